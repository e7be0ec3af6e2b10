"""Cost beside the GPU time (control plane, storage, network, staff, licences), month by month.

It is a pool beside the ledger's classes, distributed by the rule that its row names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from analytics.book import Book
from analytics.currencies import is_currency
from analytics.errors import InvoiceError
from analytics.months import Month
from analytics.sheet import decimal_cell, read_sheet
from collector.store import Work

RULES = ("held", "cost", "even")
"""By held GPU-hours, by what each pays for GPU time, or the same for each that held anything."""
_MOST = Decimal(1_000_000_000)
OVERHEAD = Book(
    "overhead", "overhead", ("month", "cluster", "name"), ("amount", "currency", "rule"),
    InvoiceError,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """A named amount of a month; ``cluster`` None = of all clusters together."""

    month: Month
    name: str
    amount: Decimal
    currency: str
    rule: str = "held"
    cluster: str | None = None
    source: str = "file"

    def __post_init__(self) -> None:
        checks = (
            (not self.name, "name is empty"),
            (self.rule not in RULES, f"rule {self.rule!r}: use one of {', '.join(RULES)}"),
            (not 0 < self.amount < _MOST, f"amount {self.amount}: must lie above 0 below {_MOST}"),
            (self.amount != round(self.amount, 6), f"amount {self.amount}: at most 6 decimals"),
            (not is_currency(self.currency), f"currency {self.currency!r}: use an ISO 4217 code"),
        )
        for wrong, text in checks:
            if wrong:
                raise InvoiceError(f"overhead {self.name}: {text}")


def read_overhead(text: str, name: str) -> list[Overhead]:
    """From CSV: month, name, amount, currency and optionally rule, cluster, source.

    InvoiceError with file, line and remedy.
    """
    needed = {"month", "name", "amount", "currency"}

    def read(row: dict[str, str]) -> Overhead:
        return Overhead(
            month=Month.parse(row["month"]),
            name=row["name"],
            amount=decimal_cell(row["amount"], "amount", InvoiceError),
            currency=row["currency"],
            rule=row.get("rule") or "held",
            cluster=row.get("cluster") or None,
            source=row.get("source") or name,
        )

    return read_sheet(text, name, needed, InvoiceError, read)


def load_overhead(
    work: Work, rows: Iterable[Overhead], *, at: datetime, actor: str, correct: bool = False
) -> int:
    """Put overhead into the book and return how many rows were new; see `Book.load`."""
    found = [
        {**asdict(row), "month": row.month.first,
         "overhead_id": f"{row.month} {row.cluster or '*'} {row.name}"}
        for row in rows
    ]  # fmt: skip
    return OVERHEAD.load(work, found, at=at, actor=actor, correct=correct)


def overhead_rows(work: Work, month: Month | None = None) -> list[dict[str, Any]]:
    """Every row in force, of one month or of all."""
    rows = OVERHEAD.rows(work)
    return [row for row in rows if month is None or row["month"] == month.first]
