"""The report in a sentence and in a few lines: for a subject, a chat message, a page."""

from __future__ import annotations

from scheduler_advisor.advice.recommendation import Basis, Recommendation
from scheduler_advisor.messages import Words
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.report.wording import (
    amount_text,
    hours_text,
    money_ends,
    rounded,
    sentence,
)


def headline_text(report: WeeklyReport, words: Words) -> str:
    """One sentence that a manager reads."""
    if not report.enough:
        return words.say("report.too_little")
    count = sum(rec.open and rec.saving.gpu_hours > 0 for rec in report.advice.recommendations)
    ranges = ranges_only(report)
    if not count:
        name = "headline_ranges" if ranges else "headline_nothing"
        return words.say(f"report.{name}", count=ranges)
    more = words.say("report.headline_more", count=ranges) if ranges else ""
    return _promised(report, words, count) + more


def ranges_only(report: WeeklyReport) -> int:
    """Open changes of which no amount is promised."""
    return sum(rec.open and rec.saving.range_only for rec in report.advice.recommendations)


def winnable_texts(report: WeeklyReport, words: Words) -> tuple[str, str]:
    """What all of it together would bring a week, and of what kind that is."""
    joint = report.advice.joint
    if not joint.gpu_hours:
        return "–", words.say(f"report.win_{'ranges' if ranges_only(report) else 'nothing'}")
    if joint.cost is None:
        return f"{hours_text(joint.gpu_hours)} GPU-h", words.say("report.win_unpriced")
    largest = max(joint.cash, joint.cost - joint.cash)
    cash, _ = money_ends(joint.cash, largest, None)
    capacity, _ = money_ends(joint.cost - joint.cash, largest, None)
    of = f"{capacity} {report.currency or ''}".strip()
    split = words.say("report.split", cash=cash, capacity=of)
    return amount_text(joint.cost, report.currency), split


def _promised(report: WeeklyReport, words: Words, count: int) -> str:
    joint = report.advice.joint
    if joint.cost is None:
        hours = hours_text(joint.gpu_hours)
        return words.say("report.headline_hours", count=count, hours=hours)
    amount = amount_text(rounded(float(joint.cost)), report.currency)
    cash = amount_text(rounded(float(joint.cash)), report.currency)
    own = {Basis.CASH: "headline", Basis.MIXED: "headline_mixed"}
    key = own.get(joint.basis, "headline_capacity")
    return words.say(f"report.{key}", count=count, amount=amount, cash=cash)


def top(report: WeeklyReport, count: int = 5) -> list[Recommendation]:
    """The best open changes, data quality left aside."""
    found = [rec for rec in report.advice.recommendations if rec.open and not rec.draft.first]
    return found[:count]


def top_lines(report: WeeklyReport, words: Words, count: int = 5) -> list[str]:
    """One line per change: its title."""
    return [sentence(rec, "title", report.currency, words) for rec in top(report, count)]
