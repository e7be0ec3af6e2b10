"""Dated currency rates: the only way from one currency into another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from analytics.book import Book
from analytics.currencies import is_currency
from analytics.errors import PriceError
from analytics.sheet import decimal_cell, read_sheet
from analytics.window import parse_time
from collector.store import Work

_MOST = Decimal("100000000")
RATES = Book(
    "currency_rate", "rate", ("from_currency", "to_currency", "effective_from"), ("rate",),
    PriceError,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrencyRate:
    """From ``effective_from`` until the next rate of the pair, 1 ``from_currency`` is ``rate``
    ``to_currency``. The other way round is a rate of its own."""

    from_currency: str
    to_currency: str
    rate: Decimal
    effective_from: datetime
    source: str

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem is not None:
            raise PriceError(f"rate {self.from_currency} to {self.to_currency}: {problem}")


def _problem(rate: CurrencyRate) -> str | None:
    at = rate.effective_from
    unknown = [c for c in (rate.from_currency, rate.to_currency) if not is_currency(c)]
    checks = (
        (bool(unknown), f"{' and '.join(unknown)}: use ISO 4217 codes such as EUR"),
        (rate.from_currency == rate.to_currency, "a currency has no rate to itself"),
        (not 0 < rate.rate < _MOST, f"rate {rate.rate}: must lie above 0 and below {_MOST}"),
        (rate.rate != round(rate.rate, 9), f"rate {rate.rate}: at most 9 decimals"),
        (
            (at.minute, at.second, at.microsecond) != (0, 0, 0),
            f"effective_from {at.isoformat()}: a rate begins at a whole hour UTC",
        ),
    )
    return next((text for wrong, text in checks if wrong), None)


def read_rates(text: str, name: str) -> list[CurrencyRate]:
    """Rates from CSV: from_currency, to_currency, rate, effective_from and optionally source.

    Raises PriceError with file, line and remedy; nothing of a broken file is returned.
    """
    needed = {"from_currency", "to_currency", "rate", "effective_from"}
    return read_sheet(text, name, needed, PriceError, lambda row: _from_row(row, name))


def _from_row(row: dict[str, str], name: str) -> CurrencyRate:
    return CurrencyRate(
        from_currency=row["from_currency"],
        to_currency=row["to_currency"],
        rate=decimal_cell(row["rate"], "rate", PriceError),
        effective_from=parse_time(row["effective_from"]),
        source=row.get("source") or name,
    )


def load_rates(
    work: Work,
    rows: Iterable[CurrencyRate],
    *,
    at: datetime,
    actor: str,
    correct: bool = False,
) -> int:
    """Put rates into the book and return how many were new; see `Book.load`."""
    found = [asdict(rate) for rate in rows]
    return RATES.load(work, found, at=at, actor=actor, correct=correct)


def rate_rows(work: Work) -> list[dict[str, Any]]:
    """Every rate in force, by pair and start."""
    return RATES.rows(work)
