"""One currency per report: amounts of another are converted by dated rates or refused."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction
from typing import Any

from analytics.currencies import is_currency
from analytics.currency_rates import rate_rows
from analytics.errors import PriceError
from collector.store import Work


class Rates:
    """The dated rates of the store."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._starts: dict[tuple[str, str], list[datetime]] = {}
        self._rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in rows:  # by pair and start
            pair = (row["from_currency"], row["to_currency"])
            self._starts.setdefault(pair, []).append(row["effective_from"])
            self._rows.setdefault(pair, []).append(row)

    @classmethod
    def load(cls, work: Work) -> Rates:
        return cls(rate_rows(work))

    def changes(self, found: Iterable[str], target: str | None) -> list[datetime]:
        """The instants at which a rate from one of ``found`` into ``target`` begins."""
        pairs = [(source, target) for source in found if target is not None and source != target]
        return sorted({t for pair in pairs for t in self._starts.get(pair, ())})

    def row(self, source: str, target: str, at: datetime) -> dict[str, Any]:
        """The rate's row that holds at ``at``; PriceError where there is none."""
        place = bisect_right(self._starts.get((source, target), []), at)
        if not place:
            raise PriceError(
                f"no rate from {source} to {target} on {at.date()}: add one "
                f"(currency_rate: price rates load FILE), or report in {source}"
            )
        return self._rows[source, target][place - 1]

    def rate(self, source: str, target: str, at: datetime) -> Fraction:
        """How much of ``target`` one ``source`` is at ``at``; PriceError where no rate says so."""
        return Fraction(1) if source == target else Fraction(self.row(source, target, at)["rate"])


def one_currency(found: set[str], asked: str | None) -> str | None:
    """The report's currency; PriceError where several would be mixed silently."""
    if asked is not None:
        if not is_currency(asked):
            raise PriceError(f"currency {asked!r}: use an ISO 4217 code such as USD")
        return asked
    if len(found) > 1:
        raise PriceError(
            f"prices are in {', '.join(sorted(found))}: say which currency the report is in "
            "(--currency) and have dated rates"
        )
    return next(iter(found), None)
