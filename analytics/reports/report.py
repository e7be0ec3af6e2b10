"""A report: rows that add up to their total, and the proof that they do."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from analytics.money import text
from analytics.window import Window

if TYPE_CHECKING:
    from analytics.reports.adjusted import AdjustmentLine

Row = dict[str, Any]
"""Group keys, GPU-hours as Decimal, ``cost`` as Decimal or None (not priced),
``coverage_ratio``."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What is posted less what is installed; both are 0 in a ledger that is true and complete."""

    gpu_seconds_difference: Decimal
    cost_difference: Decimal

    @property
    def holds(self) -> bool:
        return not self.gpu_seconds_difference and not self.cost_difference

    def to_dict(self) -> dict[str, Any]:
        seconds = self.gpu_seconds_difference
        exact = int(seconds) if seconds == int(seconds) else float(seconds)
        cost = self.cost_difference
        return {
            "gpu_seconds_difference": exact,
            "cost_difference": "0" if not cost else text(cost),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """Rows of one window; ``remarks`` say what keeps a figure from being whole, ``adjustments``
    stand beside the total and are in no row."""

    window: Window
    by: tuple[str, ...]
    currency: str | None
    coverage_ratio: float | None
    price_book: str | None
    rows: list[Row]
    total: Row
    identity: Identity
    remarks: list[str] = field(default_factory=list)
    adjustments: list[AdjustmentLine] = field(default_factory=list)

    @property
    def adjusted_cost(self) -> Decimal | None:
        """The total with its adjustments; None where one of them is not in this currency."""
        lines = [line.cost for line in self.adjustments]
        cost: Decimal | None = self.total.get("cost")
        if cost is None or None in lines:
            return None
        return cost + sum((line for line in lines if line is not None), Decimal(0))

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the command line and the API: hours as numbers, money as text."""
        return {
            "window": self.window.to_dict(),
            "currency": self.currency,
            "coverage_ratio": self.coverage_ratio,
            "price_book": self.price_book,
            "rows": [_plain(row) for row in self.rows],
            "total": _plain(self.total),
            "identity": self.identity.to_dict(),
            "remarks": list(self.remarks),
            "adjustments": [
                {
                    **line.adjustment.to_dict(),
                    "cost": None if line.cost is None else text(line.cost),
                }
                for line in self.adjustments
            ],
            "adjusted_cost": None if self.adjusted_cost is None else text(self.adjusted_cost),
        }


def _plain(row: Row) -> Row:
    return {
        name: (text(value) if name.endswith("cost") else float(value))
        if isinstance(value, Decimal)
        else value
        for name, value in row.items()
    }
