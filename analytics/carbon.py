"""Dated carbon intensity: grams of CO2 equivalent per kWh, and the building on top."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from analytics.book import Book
from analytics.errors import InvoiceError
from analytics.sheet import decimal_cell, read_sheet
from analytics.window import parse_time
from collector.store import Work

_MOST_GRAMS = Decimal(3000)
_MOST_PUE = Decimal(5)
INTENSITY = Book(
    "carbon_intensity", "carbon", ("cluster", "effective_from"), ("grams_per_kwh", "pue_ratio"),
    InvoiceError,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Intensity:
    """From here until the cluster's next row; ``cluster`` None = clusters without rows of their
    own. ``pue_ratio``: energy of the building per energy of the boards, 1 or more."""

    grams_per_kwh: Decimal
    effective_from: datetime
    pue_ratio: Decimal = Decimal(1)
    cluster: str | None = None
    source: str = "file"

    def __post_init__(self) -> None:
        at = self.effective_from
        checks = (
            (
                not 0 <= self.grams_per_kwh < _MOST_GRAMS,
                f"{self.grams_per_kwh} g per kWh: must be 0 to {_MOST_GRAMS}; is it per MWh?",
            ),
            (
                not 1 <= self.pue_ratio < _MOST_PUE,
                f"pue {self.pue_ratio}: must be 1 or more and below {_MOST_PUE}",
            ),
            (
                (at.minute, at.second, at.microsecond) != (0, 0, 0),
                f"effective_from {at.isoformat()}: it begins at a whole hour UTC",
            ),
        )
        for wrong, text in checks:
            if wrong:
                raise InvoiceError(f"carbon intensity: {text}")


def read_intensities(text: str, name: str) -> list[Intensity]:
    """From CSV: grams_per_kwh, effective_from and optionally pue, cluster, source.

    InvoiceError with file, line and remedy.
    """

    def read(row: dict[str, str]) -> Intensity:
        return Intensity(
            grams_per_kwh=decimal_cell(row["grams_per_kwh"], "grams_per_kwh", InvoiceError),
            effective_from=parse_time(row["effective_from"]),
            pue_ratio=decimal_cell(row.get("pue") or "1", "pue", InvoiceError),
            cluster=row.get("cluster") or None,
            source=row.get("source") or name,
        )

    return read_sheet(text, name, {"grams_per_kwh", "effective_from"}, InvoiceError, read)


def load_intensities(
    work: Work, rows: Iterable[Intensity], *, at: datetime, actor: str, correct: bool = False
) -> int:
    """Put intensities into the book and return how many were new; see `Book.load`."""
    found = [asdict(row) for row in rows]
    return INTENSITY.load(work, found, at=at, actor=actor, correct=correct)


def intensity_rows(work: Work) -> list[dict[str, Any]]:
    """Every row in force, by cluster and start."""
    return INTENSITY.rows(work)


def intensity_at(
    rows: Sequence[dict[str, Any]], cluster: str, at: datetime
) -> dict[str, Any] | None:
    """The row that holds for a cluster at an instant: its own before a general one."""
    live = [r for r in rows if r["cluster"] in (None, cluster) and r["effective_from"] <= at]
    return max(
        live, key=lambda row: (row["cluster"] is not None, row["effective_from"]), default=None
    )
