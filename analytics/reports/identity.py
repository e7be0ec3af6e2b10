"""The other side of the identity: what is installed and what it costs, from inventory and price
book."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from analytics.ledger.facts import inventory
from analytics.ledger.fleet import Fleet, clip
from analytics.ledger.pricing import PriceTimes
from analytics.ledger.settings import settings_at
from analytics.prices import in_force
from analytics.reports.rates import Rates
from analytics.window import Window, from_us, to_us
from collector.store import Work

# gpu_us x micro-currency -> currency per GPU-hour
PER_UNIT = Fraction(1, 3_600_000_000 * 1_000_000)


@dataclass(slots=True)
class Installed:
    """GPU time in micro-GPU-seconds, and its cost per currency in micro-currency x GPU time."""

    gpu_us: int = 0
    unpriced_us: int = 0
    cost: dict[tuple[str, datetime], int] = field(default_factory=dict)

    def money(self, currency: str, rates: Rates) -> Fraction:
        """All of it in one currency."""
        return sum(
            (
                amount * PER_UNIT * rates.rate(source, currency, at)
                for (source, at), amount in self.cost.items()
            ),
            Fraction(0),
        )


def installed(
    work: Work, clusters: list[str], window: Window, spans: list[tuple[datetime, datetime]]
) -> Installed:
    """What the clusters have over the window, priced; independent of what the ledger posted."""
    total = Installed()
    for cluster in clusters:
        facts = inventory(work, cluster, window.since_us, window.until_us)
        fleet = Fleet.of(facts)
        prices = PriceTimes.load(
            work, cluster, settings_at(work, cluster, window.since).purchase_type
        )
        edges = {to_us(t) for span in spans for t in span}
        for pool, timeline in enumerate(fleet.installed):
            model = fleet.pools[pool][1]
            cuts = sorted(edges | prices.changes([model]))
            for t0, t1, gpus in clip(timeline, window.since_us, window.until_us):
                inside = [t0, *(t for t in cuts if t0 < t < t1), t1]
                for a, b in itertools.pairwise(inside):
                    _add(total, prices, (cluster, model), (a, b, gpus), work)
    return total


def _add(
    total: Installed,
    prices: PriceTimes,
    place: tuple[str, str],
    part: tuple[int, int, int],
    work: Work,
) -> None:
    a, b, gpus = part
    amount = gpus * (b - a)
    total.gpu_us += amount
    purchase = settings_at(work, place[0], from_us(a)).purchase_type
    row = in_force(prices.rows_of(place[1]), from_us(a), purchase)
    if row is None:
        total.unpriced_us += amount
        return
    key = (row["currency"], from_us(a))
    total.cost[key] = total.cost.get(key, 0) + amount * int(row["amount"] * 1_000_000)
