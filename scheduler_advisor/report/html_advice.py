"""The changes, best first: what is wrong, what to do, what it brings, what it risks."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_advisor.advice.recommendation import Recommendation, Saving
from scheduler_advisor.messages import Words
from scheduler_advisor.report import svg
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.report.html_evidence import evidence
from scheduler_advisor.report.html_replay import unable_line
from scheduler_advisor.report.markup import Markup, join, tag
from scheduler_advisor.report.sureness import overlap_text, sure_text, waits_less, worse_text
from scheduler_advisor.report.wording import (
    amount_text,
    hours_ends,
    hours_text,
    kind_name,
    money_ends,
    owner_text,
    reason_text,
    sentence,
)


def changes(report: WeeklyReport, words: Words, *, unfolded: bool) -> Markup | None:
    """Every open recommendation as a card."""
    found = [rec for rec in report.advice.recommendations if rec.open and not rec.draft.first]
    if not found:
        return None
    cards = _cards(found, report, words, unfolded=unfolded)
    key = "report.ranked_by" if report.goals.given else "report.ranked_default"
    order = words.say(key, first=words.say(f"report.first_{report.goals.first}"))
    note = words.say("report.overlap_note") if any(rec.overlaps for rec in found) else None
    return join(
        tag("h2", words.say("report.todo")),
        tag("p", order, " ", note, cls="sub"),
        tag("ol", *cards, cls="advice"),
    )


def quality_cards(report: WeeklyReport, words: Words, *, unfolded: bool) -> Markup | None:
    """The gaps that the head of the page names, with all that belongs to a recommendation."""
    first = [rec for rec in report.advice.recommendations if rec.open and rec.draft.first]
    if not first:
        return None
    cards = _cards(first, report, words, unfolded=unfolded)
    return join(tag("h2", words.say("report.quality_cards")), tag("ol", *cards, cls="advice"))


def _cards(
    found: list[Recommendation], report: WeeklyReport, words: Words, *, unfolded: bool
) -> list[Markup]:
    most = max(_high(rec.saving) for rec in found)
    ranks = {rec.id: place for place, rec in enumerate(found, 1)}
    return [_card(rec, ranks, report, words, most=most, unfolded=unfolded) for rec in found]


def _high(saving: Saving) -> float:
    return float(saving.high if saving.high is not None else saving.gpu_hours_high)


def _card(
    rec: Recommendation,
    ranks: Mapping[str, int],
    report: WeeklyReport,
    words: Words,
    *,
    most: float,
    unfolded: bool,
) -> Markup:
    def say(part: str) -> str:
        return sentence(rec, part, report.currency, words)

    owner = owner_text(rec.draft, words)
    duty = words.say(f"duty.{rec.draft.duty.value}")
    who = owner if duty == owner else f"{owner} · {words.say('report.who')}: {duty}"
    top = tag(
        "div",
        tag("span", ranks[rec.id], cls="rank"),
        tag("h3", say("title")),
        tag("span", kind_name(rec.kind, words), cls="pill"),
        tag("span", who, cls="pill who"),
        cls="top",
    )
    grid = tag(
        "div",
        tag("div", tag("h4", words.say("report.wrong")), tag("p", say("why"))),
        tag("div", tag("h4", words.say("report.do")), tag("p", say("do"))),
        tag("div", tag("h4", words.say("report.brings")), _brings(rec, report, words, most),
            _line(overlap_text(rec, ranks, words)), cls="brings"),
        tag("div", tag("h4", words.say("report.risks")), tag("p", _dots(rec, words), say("risk")),
            _line(worse_text(rec, words)), _unable(rec, words),
            _line(f"{words.say('sure.title')}: {sure_text(rec, words)}")),
        cls="grid",
    )  # fmt: skip
    return tag("li", top, grid, evidence(rec, report, words, unfolded=unfolded), cls="card",
               id=rec.id)  # fmt: skip


def _unable(rec: Recommendation, words: Words) -> Markup | None:
    line = None if rec.draft.replay is None else unable_line(rec.draft.replay, words)
    return _line(line)


def _line(text: str | None) -> Markup | None:
    return None if text is None else tag("p", text, cls="hint")


def _brings(rec: Recommendation, report: WeeklyReport, words: Words, most: float) -> Markup:
    saving, waiting = rec.saving, waits_less(rec, words)
    if waiting is not None:
        hint = f"{words.say('number.modelled')}"
        return join(tag("b", waiting), tag("span", f"{words.say('phrase.interval_of')} · ",
                    tag("span", hint, cls="k"), cls="hint"))  # fmt: skip
    if saving.range_only:
        return _range(saving, report, words, most)
    if not saving.gpu_hours:
        return tag("p", words.say("phrase.no_saving"))
    hours = f"{hours_text(saving.gpu_hours)} GPU-h"
    if saving.cost is None or saving.low is None or saving.high is None:
        low, high = hours_ends(saving.gpu_hours_low, saving.gpu_hours_high)
        bar = svg.range_bar(saving.gpu_hours_low, saving.gpu_hours, saving.gpu_hours_high, most)
        main, beside = words.say("phrase.per_week", amount=hours), ""
    else:
        low, high = money_ends(saving.low, saving.high, None)
        bar = svg.range_bar(float(saving.low), float(saving.cost), float(saving.high), most)
        main = words.say("phrase.per_week", amount=amount_text(saving.cost, report.currency))
        beside = f"{hours} · "
    interval = words.say("phrase.interval", low=low, high=high)
    return join(
        tag("b", main),
        bar,
        tag("span", f"{beside}{words.say(f'phrase.{saving.basis.value}')} · {interval} · ",
            tag("span", words.say("number.modelled"), cls="k"), cls="hint"),
    )  # fmt: skip


def _range(saving: Saving, report: WeeklyReport, words: Words, most: float) -> Markup:
    """The interval without a point: the replay's fidelity carries no promise."""
    low, high = hours_ends(saving.gpu_hours_low, saving.gpu_hours_high)
    high = f"{high} GPU-h"
    bar = svg.range_bar(saving.gpu_hours_low, None, saving.gpu_hours_high, most)
    if saving.low is not None and saving.high is not None:
        low, high = money_ends(saving.low, saving.high, report.currency)
        bar = svg.range_bar(float(saving.low), None, float(saving.high), most)
    return join(
        tag("b", words.say("phrase.range", low=low, high=high)),
        bar,
        tag("span", f"{words.say('phrase.no_promise')} · ",
            tag("span", words.say("number.modelled"), cls="k"), cls="hint"),
    )  # fmt: skip


def _dots(rec: Recommendation, words: Words) -> Markup:
    on = tag("span", "●" * max(rec.risk, 1 if rec.risk == 0 else rec.risk), cls="on")
    off = tag("span", "●" * (4 - max(rec.risk, 1)), cls="off")
    label = words.say(f"risk.{rec.risk}")
    return join(tag("span", on, off, cls=f"dots r{rec.risk}", title=label), tag("b", f"{label}. "))


def the_rest(report: WeeklyReport, words: Words) -> Markup | None:
    """What was not measured, not recommended, and set aside: silence is not approval."""
    advice = report.advice
    blocks: list[Markup] = []
    if advice.not_measured:
        items = [
            tag("li", words.say("report.not_measured_text", kind=kind_name(entry.kind, words),
                missing=", ".join(words.say(f"need.{need}") for need in entry.missing)))
            for entry in advice.not_measured
        ]  # fmt: skip
        blocks += [tag("h2", words.say("report.not_measured")), tag("ul", *items)]
    if advice.not_recommended:
        items = [
            tag("li", tag("b", kind_name(entry.kind, words)), ": ",
                reason_text(entry, words))
            for entry in advice.not_recommended
        ]  # fmt: skip
        blocks += [tag("h2", words.say("report.not_recommended")), tag("ul", *items)]
    aside = [rec for rec in advice.recommendations if not rec.open]
    if aside:
        items = [
            tag("li", sentence(rec, "title", report.currency, words), " · ",
                words.say(f"state.{rec.state.value}"), " · ",
                (rec.history[-1].reason or "") if rec.history else "", " ", tag("code", rec.id))
            for rec in aside
        ]  # fmt: skip
        blocks += [tag("h2", words.say("report.dismissed")), tag("ul", *items)]
    return join(*blocks) if blocks else None
