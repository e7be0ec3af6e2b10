"""How much free GPU time could not be used, and for what reason most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from dashboard.data import Report
from dashboard.figures import Row, exact, ratio
from dashboard.formats import hours, percent, whole_money
from dashboard.palette import STRANDED
from dashboard.parts.html import Tile
from dashboard.teams.names import team_name
from dashboard.words import Words


def sums(rows: Sequence[Row], names: Sequence[str]) -> tuple[Decimal, Decimal | None]:
    """GPU-hours and cost of the rows of some classes; the cost is None without prices."""
    chosen = [row for row in rows if row["class"] in names]
    costs = [row["cost"] for row in chosen if row["cost"] is not None]
    gpu_hours = sum((exact(row["gpu_hours"]) for row in chosen), Decimal())
    return gpu_hours, sum(costs, Decimal()) if costs else None


def answer_text(report: Report, words: Words) -> str:
    """The stranded time, its largest reason and the team whose jobs caused most of it."""
    gpu_hours, cost = sums(report.rows, STRANDED)
    if not gpu_hours:
        return words("stranding.answer_none")
    by_class: dict[str, Decimal] = defaultdict(Decimal)
    by_team: dict[str | None, Decimal] = defaultdict(Decimal)
    for row in report.rows:
        if row["class"] in STRANDED:
            by_class[row["class"]] += exact(row["gpu_hours"])
            by_team[row["team"]] += exact(row["gpu_hours"])
    reason = max(by_class, key=lambda name: by_class[name])
    team = max(by_team, key=lambda name: by_team[name])
    return words(
        "stranding.answer",
        hours=hours(float(gpu_hours)),
        cost=whole_money(cost, report.currency),
        reason=words(f"class.{reason}"),
        reason_share=percent(ratio(by_class[reason], gpu_hours)),
        team=team_name(team, words),
        team_share=percent(ratio(by_team[team], gpu_hours)),
    )


def headline_tiles(report: Report, words: Words) -> list[Tile]:
    """Stranded, its bounds, what a gang kept waiting, what policy kept, what could be filled."""
    total = report.total
    tiles = [_tile(name, names, report, words) for name, names in _GROUPS.items()]
    tiles.append(
        Tile(
            label=words("stranding.fillable"),
            value=hours(float(total["fillable_gpu_hours"])),
            kind="modelled",
            help=words("stranding.fillable_help"),
            sub=words("stranding.fillable_sub"),
        )
    )
    tiles.append(
        Tile(
            label=words("stranding.bounds"),
            value=f"{float(total['stranded_low_gpu_hours']):,.0f}"
            f"–{float(total['stranded_high_gpu_hours']):,.0f} GPU-h",
            kind="modelled",
            help=words("stranding.bounds_help"),
            sub=words("stranding.bounds_sub"),
        )
    )
    return tiles


_GROUPS = {
    "stranded": STRANDED,
    "gang_wait": ("gang_wait",),
    "policy_blocked": ("policy_blocked",),
}


def _tile(name: str, names: Sequence[str], report: Report, words: Words) -> Tile:
    gpu_hours, cost = sums(report.rows, names)
    money = whole_money(cost, report.currency)
    return Tile(
        label=words(f"stranding.{name}"),
        value=hours(float(gpu_hours)),
        kind="modelled",
        help=words(f"stranding.{name}_help"),
        sub=money if cost is not None else words("stranding.no_price"),
    )
