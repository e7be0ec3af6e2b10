"""How much is known, and what lowers it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from analytics.health.conflicts import Conflict, Unpriced
from analytics.health.gaps import Gap
from dashboard.data import Report
from dashboard.figures import ClassSums, Row, exact, ratio
from dashboard.formats import hours, percent
from dashboard.parts.html import Tile
from dashboard.words import Words

LEAST_GAP = "1 h"


def answer_text(report: Report, gaps: Sequence[Gap], words: Words) -> str:
    """Coverage in a sentence."""
    remark = (
        words("health.answer_gaps", count=len(gaps), least=LEAST_GAP)
        if gaps
        else words("health.answer_no_gaps")
    )
    return words("health.answer", coverage=percent(report.coverage_ratio), gaps=remark)


def headline_tiles(
    sums: ClassSums,
    report: Report,
    holders: Report,
    unpriced: Sequence[Unpriced],
    conflicts: Sequence[Conflict],
    words: Words,
) -> list[Tile]:
    """Coverage and the five things that lower trust."""
    unmapped = sum((exact(r["held_gpu_hours"]) for r in unmapped_rows(holders)), Decimal())
    return [
        Tile(
            label=words("health.coverage"),
            value=percent(report.coverage_ratio),
            kind="observed",
            help=words("window.coverage_help"),
            sub=words("health.coverage_sub"),
            ratio=report.coverage_ratio,
        ),
        _gap("unknown", sums.gpu_hours["unknown"], sums.installed, words),
        _gap("unmeasured", sums.gpu_hours["allocated_unmeasured"], sums.installed, words),
        _gap("unpriced", sum((u.gpu_hours for u in unpriced), Decimal()), sums.installed, words),
        _gap("unmapped", unmapped, sums.installed, words),
        _gap("conflicts", sum((c.gpu_hours for c in conflicts), Decimal()), sums.installed, words),
    ]


def unmapped_rows(holders: Report) -> list[Row]:
    """Rows of holders without a team, most GPU time first."""
    rows = [row for row in holders.rows if row["team"] == "unmapped"]
    return sorted(rows, key=lambda row: -float(row["held_gpu_hours"]))


def _gap(name: str, amount: Decimal, installed: Decimal, words: Words) -> Tile:
    return Tile(
        label=words(f"health.{name}"),
        value=hours(float(amount)),
        kind="observed",
        sub=words(f"health.{name}_sub"),
        ratio=ratio(amount, installed),
        warn=True,
    )
