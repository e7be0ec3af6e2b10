"""Figures that pages compute from report rows: plain sums and ratios, never a second truth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dashboard.palette import CLASSES, HELD, STRANDED

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClassSums:
    """GPU-hours and cost per ledger class; ``cost`` is None where nothing is priced."""

    gpu_hours: Mapping[str, Decimal]
    cost: Mapping[str, Decimal] | None

    def hours(self, names: Iterable[str]) -> Decimal:
        """GPU-hours of some classes."""
        return sum((self.gpu_hours[name] for name in names), Decimal())

    def money(self, names: Iterable[str]) -> Decimal | None:
        """Cost of some classes."""
        if self.cost is None:
            return None
        return sum((self.cost[name] for name in names), Decimal())

    @property
    def installed(self) -> Decimal:
        """All GPU-hours."""
        return self.hours(CLASSES)

    @property
    def occupancy(self) -> float | None:
        """Held / installed."""
        return ratio(self.hours(HELD), self.installed)

    @property
    def efficiency(self) -> float | None:
        """Used / (used + lost + allocated_idle)."""
        return ratio(self.gpu_hours["used"], self.hours(("used", "lost", "allocated_idle")))

    @property
    def goodput(self) -> float | None:
        """Used / installed."""
        return ratio(self.gpu_hours["used"], self.installed)

    @property
    def stranded_hours(self) -> Decimal:
        """GPU-hours of the stranded classes."""
        return self.hours(STRANDED)

    @property
    def stranded_share(self) -> float | None:
        """Stranded / installed."""
        return ratio(self.stranded_hours, self.installed)

    @property
    def stranded_money(self) -> Decimal | None:
        """Cost of the stranded classes."""
        return self.money(STRANDED)

    def amount(self, name: str) -> Decimal:
        """What charts draw: cost, or GPU-hours where nothing is priced."""
        return self.gpu_hours[name] if self.cost is None else self.cost[name]


def class_sums(rows: Iterable[Row]) -> ClassSums:
    """Sums per class of rows that have ``class``, ``gpu_hours`` and ``cost``."""
    hours = dict.fromkeys(CLASSES, Decimal())
    cost = dict.fromkeys(CLASSES, Decimal())
    priced = False
    for row in rows:
        hours[row["class"]] += row["gpu_hours"]
        if row["cost"] is not None:
            priced = priced or row["cost"] != 0
            cost[row["class"]] += row["cost"]
    return ClassSums(hours, cost if priced else None)


def exact(value: float | str | Decimal) -> Decimal:
    """A figure of a report as Decimal, without a float's tail."""
    return value if isinstance(value, Decimal) else Decimal(str(value))


def ratio(part: Decimal, whole: Decimal) -> float | None:
    """``part / whole``; None where there is no whole."""
    return float(part / whole) if whole else None


def row_efficiency(row: Row) -> float | None:
    """Used over used, lost and idle of a cost row; None where nothing was measured."""
    used = exact(row["used_gpu_hours"])
    return ratio(used, used + exact(row["lost_gpu_hours"]) + exact(row["allocated_idle_gpu_hours"]))


def cost_per_used_hour(row: Row) -> Decimal | None:
    """What one used GPU-hour cost the row's holder."""
    used = exact(row["used_gpu_hours"])
    return row["cost"] / used if used and row["cost"] is not None else None
