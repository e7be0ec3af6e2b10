"""What a report looks up beside the ledger's rows."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

from analytics.gpu_models import ModelNames
from analytics.ledger.pricing import PriceTimes
from analytics.ledger.settings import SettingHistory
from analytics.prices import DEFAULT_SOURCE
from analytics.reports.price_book import PriceBook
from collector.store import Work


class Known:
    """Price book, names of models and settings, each read when it is first asked for, once."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._settings: dict[str, SettingHistory] = {}

    @cached_property
    def book(self) -> PriceBook:
        return PriceBook.load(self._work)

    @cached_property
    def names(self) -> ModelNames:
        return ModelNames.load(self._work)

    def settings(self, cluster: str) -> SettingHistory:
        """Every setting of a cluster."""
        if cluster not in self._settings:
            self._settings[cluster] = SettingHistory.load(self._work, cluster)
        return self._settings[cluster]

    def prices(self, cluster: str, purchase_type: str, closed_at: datetime | None) -> PriceTimes:
        """The book of now, or the one that a closed day rests on."""
        rows = self.book.alive(cluster, closed_at)
        if not any(row["source"].startswith(DEFAULT_SOURCE) for row in rows):
            return PriceTimes.load(self._work, cluster, purchase_type, closed_at)
        return PriceTimes(self.names, rows, purchase_type)
