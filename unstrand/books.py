"""The books that decide a bill, as the command line and the API read and load them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from analytics.carbon import intensity_rows, load_intensities, read_intensities
from analytics.commitments import commitment_rows, load_commitments, read_commitments
from analytics.currency_rates import load_rates, rate_rows, read_rates
from analytics.months import Month
from analytics.overhead import load_overhead, overhead_rows, read_overhead
from collector.store import Work


def price_rows(work: Work) -> list[dict[str, Any]]:
    """Every price that was not replaced by a corrected one, by model and start."""
    return work.rows(
        "SELECT cluster, gpu_model, purchase_type, amount, currency, kind, free, "
        "effective_from, effective_to, source, retrieved_on FROM price "
        "WHERE retired_at IS NULL ORDER BY gpu_model, cluster NULLS FIRST, effective_from"
    )


class Load(Protocol):
    """Puts rows into a book and returns how many were new."""

    def __call__(
        self, work: Work, rows: Any, *, at: datetime, actor: str, correct: bool = False
    ) -> int: ...


@dataclass(frozen=True, slots=True)
class SheetBook:
    """A book that is filled from CSV files; ``columns`` says what they hold."""

    name: str
    what: str
    columns: str
    read: Callable[[str, str], list[Any]]
    load: Load
    rows: Callable[[Work], list[dict[str, Any]]]


def _overhead(work: Work) -> list[dict[str, Any]]:
    rows = overhead_rows(work)
    return [{**row, "month": str(Month.of(row["month"]))} for row in rows]


SHEET_BOOKS = (
    SheetBook(
        "rates", "Dated currency rates.",
        "from_currency, to_currency, rate, effective_from; and, where known, source. A rate holds "
        "until the next of its pair; the other way round is a rate of its own.",
        read_rates, load_rates, rate_rows,
    ),
    SheetBook(
        "commitments", "Reservations and committed use: paid for, used or not.",
        "commitment_id, gpu_model, gpus, amount (per GPU-hour), currency, effective_from, "
        "effective_to; and, where known, kind (reserved, committed_use, capacity_block), cluster, "
        "source.",
        read_commitments, load_commitments, commitment_rows,
    ),
    SheetBook(
        "overhead", "Cost of a month beside the GPU time, and the rule that distributes it.",
        "month (2026-10), name, amount, currency; and, where known, rule (held, cost, even), "
        "cluster, source.",
        read_overhead, load_overhead, _overhead,
    ),
    SheetBook(
        "carbon", "Dated carbon intensity, grams of CO2 equivalent per kWh.",
        "grams_per_kwh, effective_from; and, where known, pue, cluster, source.",
        read_intensities, load_intensities, intensity_rows,
    ),
)  # fmt: skip
