"""What stands behind a card: evidence, assumptions, commands, how to check and undo."""

from __future__ import annotations

from scheduler_advisor.advice.recommendation import Recommendation
from scheduler_advisor.messages import Words
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.report.html_replay import shifts
from scheduler_advisor.report.markup import Markup, join, tag
from scheduler_advisor.report.wording import amount_text, hours_text, sentence, value_text


def evidence(rec: Recommendation, report: WeeklyReport, words: Words, *, unfolded: bool) -> Markup:
    """Folded away on a screen, open on paper."""
    inner = tag(
        "div",
        _evidence(rec, report, words),
        _commands(rec, report, words),
        _basis(rec, report, words),
        _afterwards(rec, report, words),
        None if rec.draft.replay is None else shifts(rec.draft.replay, words),
        cls="more",
    )
    if unfolded:
        return inner
    return tag("details", tag("summary", words.say("report.more")), inner)


def _evidence(rec: Recommendation, report: WeeklyReport, words: Words) -> Markup:
    now = (
        f"{amount_text(rec.current_cost, report.currency)}, "
        f"{hours_text(rec.current_gpu_hours)} GPU-h {words.say('report.in_window')} "
    )
    costs = tag("li", words.say("report.now_costs"), ": ", tag("b", now),
                tag("span", words.say("number.observed"), cls="k"))  # fmt: skip
    lines = [costs] if rec.current_gpu_hours else []
    lines += [
        tag("li", words.say(f"figure.{figure.name}"), ": ",
            tag("b", value_text(figure, report.currency)), " ",
            tag("span", words.say(f"number.{figure.kind.value}"), cls="k"))
        for figure in rec.draft.figures
    ]  # fmt: skip
    commands = [f"unstrand advise rows {rec.id}"]
    commands += sorted({f.command for f in rec.draft.figures if f.command})
    return tag(
        "div",
        tag("h4", words.say("report.evidence")),
        tag("ul", *lines),
        tag("h4", words.say("report.rows"), style="margin-top:6px"),
        *(tag("pre", command) for command in commands),
    )


def _commands(rec: Recommendation, report: WeeklyReport, words: Words) -> Markup:
    blocks: list[object] = []
    for name, part in (("apply", "do"), ("verify", "check"), ("rollback", "undo")):
        command = rec.draft.commands.get(name)
        text = sentence(rec, part, report.currency, words)
        blocks += [
            tag("h4", words.say(f"report.{name}")),
            None if name == "apply" else tag("p", text),
            tag("pre", command) if command else None,
        ]
        if name == "apply" and not command:
            blocks.append(tag("p", text))
    return tag("div", *blocks)


def _basis(rec: Recommendation, report: WeeklyReport, words: Words) -> Markup:
    items = [
        tag("li", words.say(f"assumption.{entry.name}", value=entry.value))
        for entry in rec.draft.assumptions
    ]
    defaults = [entry.default for entry in rec.draft.assumptions]
    share = sum(defaults) / len(defaults) if defaults else 0.0
    models = sorted({part.gpu_model for part in rec.draft.parts if part.gpu_model})
    prices = [
        tag("p", words.say("report.price_line", model=m, text=report.prices.models[m]))
        for m in models
        if m in report.prices.models
    ]
    rules = ", ".join(f"{rule['name']} {rule['value']:g} {rule['unit']}" for rule in rec.rules)
    return tag(
        "div",
        tag("h4", words.say("report.pays")),
        tag("p", sentence(rec, "pays", report.currency, words)),
        join(
            tag("h4", words.say("report.assumes")),
            tag("ul", *items),
            tag("p", words.say("report.assumes_default", share=share), cls="sub"),
        )
        if items
        else None,
        join(tag("h4", words.say("report.price")), *prices) if prices else None,
        join(tag("h4", words.say("report.rule")), tag("p", rules, cls="sub")) if rules else None,
    )


def _afterwards(rec: Recommendation, report: WeeklyReport, words: Words) -> Markup:
    jobs = [tag("code", f"unstrand job {job} ") for job in rec.draft.examples]
    others = [tag("li", words.say(f"alternative.{name}")) for name in rec.draft.alternatives]
    names = ", ".join(rec.overlaps)
    until = f"{report.window.local(rec.expires_at):%Y-%m-%d}"
    state = words.say(f"state.{rec.state.value}")
    return tag(
        "div",
        join(tag("h4", words.say("report.examples")), tag("p", *jobs)) if jobs else None,
        join(tag("h4", words.say("report.alternatives")), tag("ul", *others)) if others else None,
        tag("p", words.say("report.overlaps", names=names)) if names else None,
        tag("p", f"{words.say('report.effort')}: {words.say(f'effort.{rec.effort}')} · "
            f"{words.say('report.state')}: {state} · {words.say('report.expires')} {until} · ",
            tag("code", rec.id)),
    )  # fmt: skip
