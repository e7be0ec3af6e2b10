"""The price book as a report reads it: once, whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from analytics.prices_in_force import alive
from analytics.reports.asked import Question
from collector.store import Work

Row = dict[str, Any]


class PriceBook:
    """Every row of the book, those out of force too: past ledgers name them."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows: dict[int, Row] = {row["price_key"]: row for row in rows}
        self._money: dict[int | None, tuple[str | None, int]] = {None: (None, 0)}
        for key, row in self._rows.items():
            self._money[key] = row["currency"], int(row["amount"] * 1_000_000)

    @classmethod
    def load(cls, work: Work) -> PriceBook:
        return cls(work.rows("SELECT * FROM price"))

    def money(self, price_key: int | None) -> tuple[str | None, int]:
        """Currency and micro-currency per GPU-hour; no currency where there is no price."""
        return self._money[price_key]

    def alive(self, cluster: str, closed_at: datetime | None) -> list[Row]:
        """What holds in a cluster now, or held when a day was closed, by key."""
        found = [
            row
            for row in self._rows.values()
            if row["cluster"] in (None, cluster) and alive(row, closed_at)
        ]
        return sorted(found, key=lambda row: int(row["price_key"]))

    def used(self, work: Work, question: Question, source: str) -> list[Row]:
        """The rows that the window's rows name, by id."""
        window = question.window
        where = "since >= ? AND until <= ?"
        if question.cluster is not None:
            where += " AND pool_key IN (SELECT pool_key FROM ledger_pool WHERE cluster = ?)"
        keys = work.rows(
            f"SELECT DISTINCT price_key FROM {source} WHERE {where}",  # noqa: S608 - our own names
            question.params(window.since, window.until),
        )
        found = [self._rows[row["price_key"]] for row in keys if row["price_key"] is not None]
        return sorted(found, key=lambda row: str(row["price_id"]))


def book_version(prices: Sequence[Row]) -> str | None:
    """A hash of price rows."""
    if not prices:
        return None
    return hashlib.sha256("|".join(row["price_id"] for row in prices).encode()).hexdigest()[:12]
