"""The answer in a sentence and the five headline figures."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from dashboard.data import Report
from dashboard.figures import ClassSums, ratio
from dashboard.formats import ABSENT, change, hours, percent, points, whole_money
from dashboard.palette import CLASSES, HELD
from dashboard.parts.html import Tile
from dashboard.words import Words

PARTS = 3
NOISE = 0.005


def answer_text(sums: ClassSums, report: Report, words: Words) -> str:
    """How much of the money was work, and the largest parts that were not."""
    if sums.cost is None:
        return words(
            "overview.answer_unpriced",
            used_share=percent(sums.goodput),
            hours=hours(float(sums.installed)),
        )
    total = sums.money(CLASSES) or Decimal()
    others = sorted((n for n in CLASSES if n != "used"), key=lambda n: -sums.amount(n))[:PARTS]
    parts = [
        words(
            "overview.answer_part",
            name=_inside_sentence(words(f"class.{name}")),
            cost=whole_money(sums.amount(name), report.currency),
            share=percent(ratio(sums.amount(name), total)),
        )
        for name in others
        if sums.amount(name)
    ]
    return words(
        "overview.answer",
        used_share=percent(ratio(sums.amount("used"), total)),
        cost=whole_money(total, report.currency),
        parts=", ".join(parts) or "–",
    )


def _inside_sentence(label: str) -> str:
    return label[:1].lower() + label[1:]


@dataclass(frozen=True, slots=True)
class Headline:
    """The window's classes beside those of its last week and the week before."""

    sums: ClassSums
    week: ClassSums | None
    before: ClassSums | None
    currency: str


def headline_tiles(head: Headline, words: Words) -> list[Tile]:
    """Cost, occupancy, efficiency, goodput, stranded money."""
    shares = [_share(name, head, words) for name in ("occupancy", "efficiency", "goodput")]
    return [_cost(head, words), *shares, _stranded(head, words)]


def _cost(head: Headline, words: Words) -> Tile:
    week = head.week.money(CLASSES) if head.week else None
    before = head.before.money(CLASSES) if head.before else None
    return Tile(
        label=words("overview.cost"),
        value=whole_money(head.sums.money(CLASSES), head.currency),
        kind="observed",
        sub=words("overview.cost_sub", hours=hours(float(head.sums.installed))),
        against=_against(words, head, change(week, before)),
    )


def _share(name: str, head: Headline, words: Words) -> Tile:
    value: float | None = getattr(head.sums, name)
    amount = {
        "occupancy": head.sums.hours(HELD),
        "efficiency": head.sums.gpu_hours["allocated_idle"],
        "goodput": head.sums.gpu_hours["used"],
    }[name]
    now: float | None = getattr(head.week, name) if head.week else None
    then: float | None = getattr(head.before, name) if head.before else None
    return Tile(
        label=words(f"overview.{name}"),
        value=percent(value),
        kind="observed",
        help=words(f"overview.{name}_help"),
        sub=words(f"overview.{name}_sub", hours=hours(float(amount))),
        against=_against(words, head, points(now, then)),
        good=_tone(_difference(now, then)),
        ratio=value,
    )


def _stranded(head: Headline, words: Words) -> Tile:
    stranded = head.sums.stranded_hours
    share = head.sums.stranded_share
    now = head.week.stranded_share if head.week else None
    then = head.before.stranded_share if head.before else None
    return Tile(
        label=words("overview.stranded"),
        value=whole_money(head.sums.stranded_money, head.currency),
        kind="modelled",
        help=words("overview.stranded_help"),
        sub=words("overview.stranded_sub", hours=hours(float(stranded)), share=percent(share)),
        against=_against(words, head, points(now, then)),
        good=_tone(_difference(now, then), less_is_good=True),
        ratio=share,
        warn=True,
    )


def _against(words: Words, head: Headline, text: str) -> str:
    if head.week is None or head.before is None:
        return words("overview.against_none")
    if text == ABSENT:
        return words("overview.against_zero")
    return words("overview.against", change=text)


def _tone(difference: float | None, *, less_is_good: bool = False) -> bool | None:
    """Good or bad, from half a percentage point up: less than that is noise."""
    if difference is None or abs(difference) < NOISE:
        return None
    return (difference < 0) == less_is_good


def _difference(now: float | None, then: float | None) -> float | None:
    return None if now is None or then is None else now - then
