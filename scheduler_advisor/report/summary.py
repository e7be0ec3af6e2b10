"""The report in a sentence and in a few lines: for a subject, a chat message, a page."""

from __future__ import annotations

from scheduler_advisor.advice.recommendation import Basis, Recommendation
from scheduler_advisor.messages import Words
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.report.wording import amount_text, hours_text, rounded, sentence


def headline_text(report: WeeklyReport, words: Words) -> str:
    """One sentence that a manager reads."""
    if not report.enough:
        return words.say("report.too_little")
    count = sum(rec.open and rec.saving.gpu_hours > 0 for rec in report.advice.recommendations)
    joint = report.advice.joint
    ranges = sum(rec.open and rec.saving.range_only for rec in report.advice.recommendations)
    if not count and ranges:
        return words.say("report.headline_ranges", count=ranges)
    if not count:
        return words.say("report.headline_nothing")
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
