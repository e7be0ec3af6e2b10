"""One currency per report: amounts of another are converted by dated rates or refused."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import Any

from analytics.errors import PriceError
from collector.store import Work


class Rates:
    """The dated rates of the store."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    @classmethod
    def load(cls, work: Work) -> Rates:
        return cls(work.rows("SELECT * FROM currency_rate ORDER BY effective_from, rate"))

    @property
    def changes(self) -> list[datetime]:
        return sorted({row["effective_from"] for row in self._rows})

    def rate(self, source: str, target: str, at: datetime) -> Fraction:
        """How much of ``target`` one ``source`` is at ``at``; PriceError where no rate says so."""
        if source == target:
            return Fraction(1)
        for row in reversed(self._rows):
            if row["effective_from"] > at:
                continue
            if (row["from_currency"], row["to_currency"]) == (source, target):
                return Fraction(row["rate"])
        raise PriceError(
            f"no rate from {source} to {target} on {at.date()}: add one "
            f"(currency_rate), or report in {source}"
        )


def one_currency(found: set[str], asked: str | None) -> str | None:
    """The report's currency; PriceError where several would be mixed silently."""
    if asked is not None:
        return asked
    if len(found) > 1:
        raise PriceError(
            f"prices are in {', '.join(sorted(found))}: say which currency the report is in "
            "(--currency) and have dated rates"
        )
    return next(iter(found), None)
