"""The report as Markdown, for a ticket or a chat."""

from __future__ import annotations

from scheduler_advisor.advice.draft import FromReplay
from scheduler_advisor.advice.recommendation import Recommendation
from scheduler_advisor.durations import duration_text
from scheduler_advisor.messages import Words
from scheduler_advisor.replayed import Replayed
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.report.html_replay import (
    diagnosis_lines,
    fidelity_line,
    mismatch_lines,
    shift_rows,
    tried_rows,
    unable_line,
    unable_rows,
)
from scheduler_advisor.report.summary import headline_text, winnable_texts
from scheduler_advisor.report.sureness import sure_text, waits_less, worse_text
from scheduler_advisor.report.wording import (
    amount_text,
    figure_text,
    hours_ends,
    hours_text,
    kind_name,
    money_ends,
    owner_text,
    reason_text,
    sentence,
)


def report_markdown(report: WeeklyReport, language: str = "en") -> str:
    """The whole report without plots."""
    words = Words(language)
    recs = report.advice.recommendations
    lines = [f"# {headline_text(report, words)}", "", *_head(report, words), ""]
    if report.enough:
        lines += _classes(report, words)
        still = [rec for rec in recs if rec.open]
        first = [rec for rec in still if rec.draft.first]
        lines += _section(words.say("report.quality"), first, report, words)
        changes = [rec for rec in still if not rec.draft.first]
        lines += _section(words.say("report.todo"), changes, report, words)
    lines += _replays(report, words)
    lines += _waits(report, words)
    lines += _rest(report, words)
    lines += ["---", "", words.say("report.footer"), "", words.say("report.feedback")]
    return "\n".join(lines) + "\n"


def _head(report: WeeklyReport, words: Words) -> list[str]:
    since, until = (
        report.window.local(report.window.since),
        report.window.local(report.window.until),
    )
    span = words.say(
        "report.window", since=f"{since:%Y-%m-%d %H:%M}", until=f"{until:%Y-%m-%d %H:%M}",
        zone=report.window.time_zone,
    )  # fmt: skip
    coverage = "–" if report.coverage_ratio is None else f"{report.coverage_ratio:.1%}"
    said = {kind: words.say(f"number.{kind}") for kind in ("observed", "modelled")}
    cost = f"{words.say('report.cost')}: {amount_text(report.cost, report.currency)}"
    win, of = winnable_texts(report, words)
    lines = [
        span,
        "",
        f"- {cost} ({said['observed']})",
        f"- {words.say('report.coverage')}: {coverage} ({said['observed']})",
        f"- {words.say('report.winnable')}: {win}, {of} ({said['modelled']})",
    ]
    if report.demo:
        lines.append(f"- **{words.say('report.demo')}**")
    return lines


def _classes(report: WeeklyReport, words: Words) -> list[str]:
    rows = [
        f"| {words.say(f'class.{e.name}')} | {hours_text(e.gpu_hours)} "
        f"| {report.share(e.name):.1%} | {amount_text(e.cost, report.currency)} |"
        for e in report.classes
        if e.gpu_hours > 0
    ]
    head = f"| | {words.say('report.gpu_hours')} | {words.say('report.share')} | |"
    observed = words.say("number.observed")
    return [
        f"## {words.say('report.where')} ({observed})",
        "",
        head,
        "|---|---:|---:|---:|",
        *rows,
        "",
    ]


def _section(
    title: str, recs: list[Recommendation], report: WeeklyReport, words: Words
) -> list[str]:
    if not recs:
        return []
    lines = [f"## {title}", ""]
    for place, rec in enumerate(recs, 1):
        lines += _one(place, rec, report, words)
    return lines


def _one(place: int, rec: Recommendation, report: WeeklyReport, words: Words) -> list[str]:
    def say(part: str) -> str:
        return sentence(rec, part, report.currency, words)

    who = f"{owner_text(rec.draft, words)}, {words.say(f'duty.{rec.draft.duty.value}')}"
    lines = [
        f"### {place}. {say('title')}",
        "",
        f"*{kind_name(rec.kind, words)} · {who}* · `{rec.id}`",
        "",
        f"- **{words.say('report.wrong')}:** {say('why')}",
        f"- **{words.say('report.do')}:** {say('do')}",
        f"- **{words.say('report.brings')}:** {_brings(rec, report, words)}",
        f"- **{words.say('report.risks')}:** {words.say(f'risk.{rec.risk}')}. {say('risk')}",
        f"- **{words.say('sure.title')}:** {sure_text(rec, words)}",
        f"- **{words.say('report.pays')}:** {say('pays')}",
        f"- **{words.say('report.verify')}:** {say('check')}",
        f"- **{words.say('report.rollback')}:** {say('undo')}",
    ]
    worse = worse_text(rec, words)
    lines += [f"- **{worse.replace(':', ':**', 1)}"] if worse else []
    lines += [f"- {figure_text(figure, report.currency, words)}" for figure in rec.draft.figures]
    if rec.draft.replay is not None:
        lines += [f"- {n}: {a} → {b}" for n, a, b in shift_rows(rec.draft.replay, words)]
        lines += _unable(rec.draft.replay, words)
    if rec.overlaps:
        lines.append("- " + words.say("report.overlaps", names=", ".join(rec.overlaps)))
    commands = [rec.draft.commands.get(name) for name in ("apply", "verify", "rollback")]
    shown = [f"unstrand advise rows {rec.id}", *filter(None, commands)]
    return [*lines, "", "```", *shown, "```", ""]


def _unable(own: FromReplay, words: Words) -> list[str]:
    """Jobs that show no sign that they resume, and what being stopped would have cost them."""
    line = unable_line(own, words)
    if line is None:
        return []
    heads = [words.say(f"replay.{name}") for name in ("gpus", "stops", "would_lose")]
    named = []
    for job, *row in unable_rows(own):
        said = ", ".join(f"{head} {value}" for head, value in zip(heads, row, strict=True))
        named.append(f"    - `{job}`: {said}")
    return [f"- {line}", *named]


def _replays(report: WeeklyReport, words: Words) -> list[str]:
    lines = []
    for each in report.replays:
        if each.calibration is None:
            continue
        lines += [f"## {words.say('diagnosis.title')} · {each.cluster}", ""]
        if each.diagnosis is not None:
            name = words.say(f"cause_name.{each.diagnosis.leading.value}")
            lines += [f"**{words.say('diagnosis.leading', name=name)}**", ""]
            lines += [*(f"- {line}" for line in diagnosis_lines(each, words)), ""]
        lines += [f"**{words.say('fidelity.title')}.** {fidelity_line(each, words)}", ""]
        lines += [*(f"- {line}" for line in mismatch_lines(each, words)), ""]
        lines += _tried(each, words)
    return lines


def _tried(each: Replayed, words: Words) -> list[str]:
    rows = tried_rows(each, words)
    if not rows:
        return []
    heads = (words.say(f"replay.{name}") for name in ("tried", "interval", "p95_wait_s", "front"))
    table = [f"| {' | '.join(row)} |" for row in rows]
    title = f"**{words.say('replay.tried_title')}**"
    return [title, "", f"| {' | '.join(heads)} |", "|---|---:|---:|---|", *table, ""]


def _brings(rec: Recommendation, report: WeeklyReport, words: Words) -> str:
    saving, waiting = rec.saving, waits_less(rec, words)
    if waiting is not None:
        return f"{waiting}, {words.say('phrase.interval_of')} ({words.say('number.modelled')})"
    if saving.range_only:
        low, high = hours_ends(saving.gpu_hours_low, saving.gpu_hours_high)
        text = words.say("phrase.range", low=low, high=f"{high} GPU-h")
        return f"{text}, {words.say('phrase.no_promise')} ({words.say('number.modelled')})"
    if not saving.gpu_hours:
        return words.say("phrase.no_saving")
    hours = f"{hours_text(saving.gpu_hours)} GPU-h"
    basis = words.say(f"phrase.{saving.basis.value}")
    kind = words.say("number.modelled")
    if saving.cost is None or saving.low is None or saving.high is None:
        low, high = hours_ends(saving.gpu_hours_low, saving.gpu_hours_high)
        interval = words.say("phrase.interval", low=low, high=high)
        return f"{words.say('phrase.per_week', amount=hours)} ({interval}), {basis} ({kind})"
    amount = words.say("phrase.per_week", amount=amount_text(saving.cost, report.currency))
    low, high = money_ends(saving.low, saving.high, None)
    interval = words.say("phrase.interval", low=low, high=high)
    return f"{amount} ({hours}; {interval}), {basis} ({kind})"


def _waits(report: WeeklyReport, words: Words) -> list[str]:
    heads = ("queue", "size", "jobs", "p50", "p95", "max", "not_started")
    head = "| " + " | ".join(words.say(f"report.{name}") for name in heads) + " |"
    rows = [
        f"| {g.queue or '–'} | {g.size} | {g.jobs:,} | {duration_text(g.p50_s)} "
        f"| {duration_text(g.p95_s)} | {duration_text(g.max_s)} | {g.not_started:,} |"
        for g in report.measurements.wait_groups
    ]
    title = f"## {words.say('report.waits')} ({words.say('number.observed')})"
    return [title, "", head, "|---|---|---:|---:|---:|---:|---:|", *rows, ""] if rows else []


def _rest(report: WeeklyReport, words: Words) -> list[str]:
    withheld = [
        f"- **{kind_name(entry.kind, words)}:** {reason_text(entry, words)}"
        for entry in report.advice.not_recommended
    ]
    if withheld:
        withheld = [f"## {words.say('report.not_recommended')}", "", *withheld, ""]
    if not report.advice.not_measured:
        return withheld
    items = [
        "- "
        + words.say("report.not_measured_text", kind=kind_name(entry.kind, words),
                    missing=", ".join(words.say(f"need.{need}") for need in entry.missing))
        for entry in report.advice.not_measured
    ]  # fmt: skip
    return [*withheld, f"## {words.say('report.not_measured')}", "", *items, ""]
