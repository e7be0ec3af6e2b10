"""GPUs that are paid for whether they are there or not: reservations and committed use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from analytics.book import Book
from analytics.currencies import is_currency
from analytics.errors import InvoiceError
from analytics.sheet import decimal_cell, read_sheet
from analytics.window import parse_time
from collector.store import Work

KINDS = ("reserved", "committed_use", "capacity_block")
_MOST_AMOUNT = Decimal(100_000)
COMMITMENTS = Book(
    "commitment", "commitment", ("commitment_id",),
    ("cluster", "gpu_model", "gpus", "amount", "currency", "kind", "effective_from",
     "effective_to"),
    InvoiceError,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """``gpus`` of a model paid at ``amount`` per GPU-hour over ``[effective_from, effective_to)``.

    What was paid up front belongs into ``amount``, divided by the GPU-hours of the term.
    ``cluster`` None = it covers GPUs of any cluster.
    """

    commitment_id: str
    gpu_model: str
    gpus: int
    amount: Decimal
    currency: str
    effective_from: datetime
    effective_to: datetime
    kind: str = "reserved"
    cluster: str | None = None
    source: str = "file"

    def __post_init__(self) -> None:
        checks = (
            (not self.commitment_id, "commitment_id is empty"),
            (not self.gpu_model, "gpu_model is empty: name the model as `price list` does"),
            (self.kind not in KINDS, f"kind {self.kind!r}: use one of {', '.join(KINDS)}"),
            (self.gpus < 1, f"gpus {self.gpus}: must be 1 or more"),
            (
                not 0 < self.amount < _MOST_AMOUNT,
                f"amount {self.amount} per GPU-hour: must lie above 0 and below {_MOST_AMOUNT}",
            ),
            (self.amount != round(self.amount, 6), f"amount {self.amount}: at most 6 decimals"),
            (not is_currency(self.currency), f"currency {self.currency!r}: use an ISO 4217 code"),
            (self.effective_to <= self.effective_from, "effective_to must lie after its start"),
        )
        for wrong, text in checks:
            if wrong:
                raise InvoiceError(f"commitment {self.commitment_id}: {text}")


def read_commitments(text: str, name: str) -> list[Commitment]:
    """From CSV: commitment_id, gpu_model, gpus, amount, currency, effective_from, effective_to and
    optionally kind, cluster, source. InvoiceError with file, line and remedy."""
    needed = {
        "commitment_id", "gpu_model", "gpus", "amount", "currency", "effective_from",
        "effective_to",
    }  # fmt: skip
    return read_sheet(text, name, needed, InvoiceError, lambda row: _from_row(row, name))


def _from_row(row: dict[str, str], name: str) -> Commitment:
    if not row["gpus"].isascii() or not row["gpus"].isdigit():
        raise InvoiceError(f"gpus {row['gpus']!r} is no whole number")
    return Commitment(
        commitment_id=row["commitment_id"],
        gpu_model=row["gpu_model"],
        gpus=int(row["gpus"]),
        amount=decimal_cell(row["amount"], "amount", InvoiceError),
        currency=row["currency"],
        effective_from=parse_time(row["effective_from"]),
        effective_to=parse_time(row["effective_to"]),
        kind=row.get("kind") or "reserved",
        cluster=row.get("cluster") or None,
        source=row.get("source") or name,
    )


def load_commitments(
    work: Work, rows: Iterable[Commitment], *, at: datetime, actor: str, correct: bool = False
) -> int:
    """Put commitments into the book and return how many were new; see `Book.load`."""
    found = [asdict(row) for row in rows]
    return COMMITMENTS.load(work, found, at=at, actor=actor, correct=correct)


def commitment_rows(work: Work) -> list[dict[str, Any]]:
    """Every commitment in force, by id."""
    return COMMITMENTS.rows(work)
