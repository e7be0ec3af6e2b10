"""What the steps of one computation share."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from analytics.ledger.facts import Facts
from analytics.ledger.fleet import Fleet
from analytics.ledger.held import Held
from analytics.ledger.kernel.state import Array
from analytics.ledger.keys import Keys, pool_keys
from analytics.ledger.pricing import PriceTimes
from analytics.ledger.profile import DemandProfile
from analytics.ledger.settings import SettingHistory
from collector.store import Work


@dataclass(slots=True)
class Frame:
    """One window of one cluster; ``bounds`` are the bounds of its slices in microseconds."""

    work: Work
    facts: Facts
    fleet: Fleet
    held: Held
    bounds: Array
    prices: PriceTimes
    settings: SettingHistory
    profiles: list[DemandProfile]
    keys: Keys
    _pool_keys: Array | None = field(default=None, repr=False)
    _price_places: Array | None = field(default=None, repr=False)

    def pool_keys(self) -> Array:
        """The key of each pool."""
        if self._pool_keys is None:
            self._pool_keys = pool_keys(self.work, self.facts.cluster, self.fleet.pools)
        return self._pool_keys

    def price_places(self) -> Array:
        """The price key of each pool and slice; -1 = not priced."""
        if self._price_places is None:
            self._price_places = self._priced()
        return self._price_places

    def _priced(self) -> Array:
        models = sorted({model for _, model in self.fleet.pools})
        keys = np.array(
            [[key or -1 for key in self.prices.keys(model, self.bounds)] for model in models],
            np.int64,
        ).reshape(len(models), self.bounds.shape[0] - 1)
        place = {model: at for at, model in enumerate(models)}
        model_of = [place[model] for _, model in self.fleet.pools]
        return keys[np.array(model_of, np.int64)]
