"""The sums behind a cost row and the columns that they are shown in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from analytics.ledger.classes import HELD, LedgerClass, Overlay
from analytics.money import SHOWN, shown_parts
from analytics.org import WHOLE_PPM
from analytics.reports.report import Row

_HOUR = Fraction(1, 3_600_000_000 * WHOLE_PPM)
_PER_HOUR = Decimal(3_600_000_000 * WHOLE_PPM)
_CLASSES = frozenset(name.value for name in LedgerClass)
_DARK = (LedgerClass.UNKNOWN, LedgerClass.ALLOCATED_UNMEASURED, Overlay.CONTESTED)
_PLACES = Decimal("0.000000001")
_NONE = Decimal(0).quantize(_PLACES)


@dataclass(slots=True)
class Sum:
    """One row in the making: GPU time per class (x ppm), money, time without a price."""

    time: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    stranded: int = 0
    unpriced: int = 0
    cost: Fraction = Fraction(0)
    priced: bool = False

    @classmethod
    def of(cls, rows: Iterable[Sum]) -> Sum:
        """Several rows in one."""
        total = cls()
        for row in rows:
            for name, amount in row.time.items():
                total.time[name] += amount
            total.stranded += row.stranded
            total.unpriced += row.unpriced
            total.cost += row.cost
            total.priced = total.priced or row.priced
        return total

    @property
    def posted(self) -> int:
        """GPU time in all classes."""
        return sum([amount for name, amount in self.time.items() if name in _CLASSES])


def figures(row: Sum, cost: Decimal) -> Row:
    """The columns of a cost row."""
    every = row.posted
    held = [(name, row.time.get(name, 0)) for name in HELD]
    dark = sum([row.time.get(name, 0) for name in _DARK])
    return {
        "gpu_hours": hours(every),
        "held_gpu_hours": hours(sum([amount for _, amount in held])),
        **{f"{name}_gpu_hours": hours(amount) for name, amount in held},
        "stranded_gpu_hours": hours(row.stranded),
        "unpriced_gpu_hours": hours(row.unpriced),
        "cost": cost if row.priced or not every else None,
        "coverage_ratio": (every - dark) / every if every else None,
    }


def hours(amount: int) -> Decimal:
    """GPU-hours of micro-GPU-seconds x ppm, to nine decimals."""
    if not amount:
        return _NONE
    return (Decimal(amount) / _PER_HOUR).quantize(_PLACES)


def hours_parts(amounts: Sequence[int]) -> list[Decimal]:
    """The same for rows whose decimals must add up to those of their sum."""
    finer = SHOWN / _PLACES
    parts = shown_parts([amount * _HOUR * int(finer) for amount in amounts])
    return [(part / finer).quantize(_PLACES) for part in parts]


def nine(exact: Fraction) -> Decimal:
    """To nine decimals."""
    return (Decimal(exact.numerator) / Decimal(exact.denominator)).quantize(_PLACES)
