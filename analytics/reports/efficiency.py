"""How well GPU time was used per group: ratios over the very rows of the cost report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Literal

from analytics.money import SHOWN
from analytics.reports.cost import cost_report
from analytics.reports.keys import CLASS_KEY, HOLDER_KEYS, checked
from analytics.reports.report import Report, Row
from analytics.window import Window
from collector.store import Store

_BASIS = ("gpu_hours", "held_gpu_hours", "used_gpu_hours")


def efficiency_report(
    store: Store,
    window: Window,
    by: Sequence[str] = ("gpu_model",),
    *,
    cluster: str | None = None,
    currency: str | None = None,
    as_of: Literal["was", "now"] = "was",
) -> Report:
    """Occupancy, efficiency, goodput and what a used GPU-hour cost, per group.

    ``occupancy_ratio`` = held / installed, ``efficiency_ratio`` = used / (used + lost + idle),
    ``goodput_ratio`` = used / installed. What is installed belongs to places and times, not to
    holders: grouped by these, occupancy and goodput are None but in the total.
    ``used_gpu_hour_cost``: the row's cost over its used GPU-hours; None where nothing was used.
    Raises as `cost_report` does.
    """
    names = tuple(name for name in checked(by) if name != CLASS_KEY)
    report = cost_report(store, window, names, cluster=cluster, currency=currency, as_of=as_of)
    held_by = bool(set(names) & set(HOLDER_KEYS))
    rows = [
        {**{key: row[key] for key in names}, **_ratios(row, whole=not held_by)}
        for row in report.rows
    ]
    return replace(report, rows=rows, total=_ratios(report.total, whole=True))


def _ratios(row: Row, *, whole: bool) -> Row:
    used, held = row["used_gpu_hours"], row["held_gpu_hours"]
    busy = used + row["lost_gpu_hours"] + row["allocated_idle_gpu_hours"]
    installed = row["gpu_hours"] if whole else Decimal(0)
    cost = row["cost"]
    return {
        **{name: row[name] for name in _BASIS},
        "occupancy_ratio": _ratio(held, installed),
        "efficiency_ratio": _ratio(used, busy),
        "goodput_ratio": _ratio(used, installed),
        "cost": cost,
        "used_gpu_hour_cost": (cost / used).quantize(SHOWN) if cost is not None and used else None,
        "coverage_ratio": row["coverage_ratio"],
    }


def _ratio(part: Decimal, whole: Decimal) -> float | None:
    return float(part / whole) if whole else None
