"""Which price holds in which slice of a build."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from analytics.gpu_models import ModelNames, normalised
from analytics.ledger.kernel.state import Array
from analytics.prices import DEFAULT_SOURCE, seed_shipped
from analytics.prices_in_force import alive_sql, in_force
from analytics.window import from_us, to_us
from collector.store import Work


def _alive(work: Work, cluster: str, closed_at: datetime | None) -> list[dict[str, Any]]:
    return work.rows(
        "SELECT * FROM price WHERE (cluster = ? OR cluster IS NULL) "  # noqa: S608 - our own condition
        f"AND {alive_sql(closed_at)} ORDER BY price_key",
        [cluster, *([closed_at] * 2 if closed_at else [])],
    )


class PriceTimes:
    """The price rows of a cluster's models."""

    def __init__(self, names: ModelNames, rows: list[dict[str, Any]], purchase_type: str) -> None:
        self.names = names
        self._purchase_type = purchase_type
        self._rows: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            self._rows.setdefault(normalised(row["gpu_model"]), []).append(row)

    @classmethod
    def load(
        cls, work: Work, cluster: str, purchase_type: str, closed_at: datetime | None = None
    ) -> PriceTimes:
        """From the book of now, with the shipped list prices in it; for a day that is closed, from
        the book as it was then."""
        rows = _alive(work, cluster, closed_at)
        if not any(row["source"].startswith(DEFAULT_SOURCE) for row in rows):
            seed_shipped(work)
            rows = _alive(work, cluster, closed_at)
        return cls(ModelNames.load(work), rows, purchase_type)

    def rows_of(self, model: str) -> list[dict[str, Any]]:
        """The rows under the best of the model's names that has any."""
        for name in self.names.candidates(model):
            if name in self._rows:
                return self._rows[name]
        return []

    def changes(self, models: Iterable[str]) -> set[int]:
        """Every instant at which a price of one of the models starts or ends."""
        times = set()
        for model in models:
            for row in self.rows_of(model):
                times.add(to_us(row["effective_from"]))
                if row["effective_to"] is not None:
                    times.add(to_us(row["effective_to"]))
        return times

    def keys(self, model: str, bounds: Array) -> list[int | None]:
        """The price key of each slice; None = not priced."""
        rows = self.rows_of(model)
        found = [in_force(rows, from_us(at), self._purchase_type) for at in bounds[:-1].tolist()]
        return [row["price_key"] if row is not None else None for row in found]
