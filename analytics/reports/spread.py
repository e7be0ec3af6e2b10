"""Unallocated cost spread over those who pay, per cluster and UTC day.

The day and the cluster are fixed, so that any two groupings of a window, and windows of whole days
that follow each other, give the same shares.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from analytics.errors import ReportError
from analytics.money import split
from analytics.reports.cells import Cell

MOST_SHARES = 1_000_000
_FINE = 10**18
Key = tuple[str | None, ...]
Place = tuple[str | None, str | None]


@dataclass(slots=True)
class Pool:
    """Per cluster and day: what is to be spread, and by what weights."""

    amounts: dict[Place, list[tuple[Key, Cell, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    weights: dict[Place, dict[Key, Fraction]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Fraction))
    )

    def add(self, place: Place, key: Key, cell: Cell, units: int) -> None:
        """An amount, as it stands in its cell."""
        self.amounts[place].append((key, cell, units))

    def weigh(self, place: Place, holder: Key, money: Fraction) -> None:
        """What a holder pays of that place; a holder without a name bears nothing."""
        if any(value is not None for value in holder):
            self.weights[place][holder] += money

    def shares(self) -> Iterator[tuple[Key, Key | None, Cell, int]]:
        """Row, holder (None: nobody is there), cell and units; they add up to what was put in.

        Raises ReportError for more than a million of them.
        """
        count = sum(len(rows) * len(self.weights[at]) for at, rows in self.amounts.items())
        if count > MOST_SHARES:
            raise ReportError(
                f"unallocated cost in {count:,} shares: at most {MOST_SHARES:,} are reported; "
                "group by less or shorten the window"
            )
        for place, rows in self.amounts.items():
            holders = sorted(self.weights[place], key=lambda key: [value or "" for value in key])
            weights = [int(self.weights[place][holder] * _FINE) for holder in holders]
            for key, cell, units in rows:
                parts = split(units, weights)
                if not parts:
                    yield key, None, cell, units
                for holder, part in zip(holders, parts, strict=False):
                    if part:
                        yield key, holder, cell, part
