"""A report that is a table of its own: rows with money in one currency, a total, remarks."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from analytics.money import text
from analytics.reports.report import Row
from analytics.window import Window


@dataclass(frozen=True, slots=True)
class TableReport:
    """Columns that end in ``cost`` are money; other Decimals are GPU-hours, energy or carbon."""

    window: Window
    currency: str | None
    rows: list[Row]
    total: Row
    remarks: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the command line and the API: money as text."""
        return {
            "window": self.window.to_dict(),
            "currency": self.currency,
            "rows": [plain(row) for row in self.rows],
            "total": plain(self.total),
            "remarks": list(self.remarks),
        }


def plain(row: Row) -> Row:
    """A row as JSON takes it."""
    return {name: _plain(name, value) for name, value in row.items()}


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, Decimal):
        return text(value) if name.endswith("cost") else float(value)
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
