"""Dated currency rates: the only way from one currency into another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from analytics.audit import note
from analytics.currencies import is_currency
from analytics.errors import PriceError
from analytics.sheet import decimal_cell, read_sheet
from analytics.window import parse_time
from collector.store import Work

_MOST = Decimal("100000000")


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
    rates: Iterable[CurrencyRate],
    *,
    at: datetime,
    actor: str,
    correct: bool = False,
) -> int:
    """Put rates into the book and return how many were new.

    Raises PriceError where a rate of the same pair and start says something else, unless
    ``correct``: the old one is then retired, and the log says so.
    """
    have = {_key(row): row for row in rate_rows(work)}
    new: list[CurrencyRate] = []
    for rate in rates:
        key = (rate.from_currency, rate.to_currency, rate.effective_from)
        old = have.get(key)
        if old is not None and old["rate"] == rate.rate:
            continue
        if old is not None:
            if not correct:
                raise PriceError(
                    f"rate {key[0]} to {key[1]} from {key[2].isoformat()} is {old['rate']:f} "
                    f"already ({old['source']}): correct it with --correct if it was wrong"
                )
            work.execute(
                "UPDATE currency_rate SET retired_at = ? WHERE retired_at IS NULL "
                "AND from_currency = ? AND to_currency = ? AND effective_from = ?",
                [at, *key],
            )
        have[key] = {"rate": rate.rate, "source": rate.source}
        note(
            work, at, actor, "rate.load", f"{key[0]}/{key[1]}", reason=rate.source,
            before=None if old is None else f"{old['rate']:f}",
            after=f"{rate.rate:f} from {key[2].isoformat()}",
        )  # fmt: skip
        new.append(rate)
    names = ("from_currency", "to_currency", "rate", "effective_from", "source")
    columns: dict[str, list[object]] = {n: [getattr(rate, n) for rate in new] for n in names}
    work.append("currency_rate", columns | {"loaded_at": [at] * len(new)})
    return len(new)


def _key(row: dict[str, Any]) -> tuple[str, str, datetime]:
    return (row["from_currency"], row["to_currency"], row["effective_from"])


def rate_rows(work: Work) -> list[dict[str, Any]]:
    """Every rate in force, by pair and start."""
    return work.rows(
        "SELECT from_currency, to_currency, rate, effective_from, source FROM currency_rate "
        "WHERE retired_at IS NULL ORDER BY from_currency, to_currency, effective_from, rate"
    )
