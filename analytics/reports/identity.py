"""The other side of the identity: what is installed and what it costs, from inventory and price
book."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from analytics.ledger.facts import inventory
from analytics.ledger.fleet import Fleet, clip
from analytics.ledger.pricing import PriceTimes
from analytics.prices import KINDS
from analytics.prices_in_force import in_force
from analytics.reports.known import Known
from analytics.reports.rates import Rates
from analytics.window import Window, from_us, to_us
from collector.store import Work

# gpu_us x micro-currency -> currency per GPU-hour
PER_UNIT = Fraction(1, 3_600_000_000 * 1_000_000)
_DAY = timedelta(days=1)


@dataclass(slots=True)
class Installed:
    """GPU time in micro-GPU-seconds, and its cost per currency in micro-currency x GPU time."""

    gpu_us: int = 0
    unpriced_us: int = 0
    cost: dict[tuple[str, datetime], int | Fraction] = field(default_factory=dict)

    def money(self, currency: str, rates: Rates) -> Fraction:
        """All of it in one currency."""
        return sum(
            (
                amount * PER_UNIT * rates.rate(source, currency, at)
                for (source, at), amount in self.cost.items()
            ),
            Fraction(0),
        )


@dataclass(frozen=True, slots=True)
class Book:
    """The prices that hold over ``[since, until)``, microseconds: for closed days those of then."""

    since: int
    until: int
    purchase_type: str
    prices: PriceTimes


def installed(
    work: Work,
    clusters: list[str],
    window: Window,
    spans: list[tuple[datetime, datetime]],
    known: Known | None = None,
) -> Installed:
    """What the clusters have over the window, priced; independent of what the ledger posted."""
    total = Installed()
    for part in installed_by_model(work, clusters, window, spans, known=known).values():
        total.gpu_us += part.gpu_us
        total.unpriced_us += part.unpriced_us
        for key, amount in part.cost.items():
            total.cost[key] = total.cost.get(key, 0) + amount
    return total


def installed_by_model(
    work: Work,
    clusters: list[str],
    window: Window,
    spans: list[tuple[datetime, datetime]],
    kinds: Collection[str] = KINDS,
    *,
    known: Known | None = None,
) -> dict[tuple[str, str], Installed]:
    """The same by cluster and GPU model, at prices of ``kinds`` alone."""
    found: dict[tuple[str, str], Installed] = defaultdict(Installed)
    edges = {to_us(t) for span in spans for t in span}
    for cluster in clusters:
        fleet = Fleet.of(inventory(work, cluster, window.since_us, window.until_us))
        for book in books(work, cluster, window, known or Known(work)):
            models: dict[str, tuple[list[dict[str, Any]], list[int]]] = {}
            for model, t0, t1, gpus in _by_model(fleet, book.since, book.until):
                if model not in models:
                    found_rows = [r for r in book.prices.rows_of(model) if r["kind"] in kinds]
                    models[model] = (found_rows, sorted(edges | book.prices.changes([model])))
                rows, cuts = models[model]
                inside = [t0, *(t for t in cuts if t0 < t < t1), t1]
                for a, b in itertools.pairwise(inside):
                    _add(found[cluster, model], rows, book.purchase_type, (a, b, gpus))
    return found


def _by_model(fleet: Fleet, since: int, until: int) -> Iterator[tuple[str, int, int, int]]:
    """Model, begin, end and GPUs of what is installed inside ``[since, until)``; most pools are
    there all the time, and are one."""
    alike: dict[tuple[str, int, int], int] = defaultdict(int)
    for (_, model), timeline in zip(fleet.pools, fleet.installed, strict=True):
        for t0, t1, gpus in clip(timeline, since, until):
            alike[model, t0, t1] += gpus
    for (model, t0, t1), gpus in alike.items():
        yield model, t0, t1, gpus


def books(work: Work, cluster: str, window: Window, known: Known) -> Iterator[Book]:
    """The window in as few pieces as there are price books and purchase types in force."""
    closed = {
        row["day"]: row["closed_at"]
        for row in work.rows(
            "SELECT day, closed_at FROM closed_day WHERE cluster = ? AND reopened_at IS NULL",
            [cluster],
        )
    }
    versions = _versions(work, cluster) if closed else []
    settings = known.settings(cluster)
    changes = settings.changes()
    purchases: dict[int, str] = {}
    pieces: list[tuple[datetime, datetime, tuple[str, int | None], datetime | None]] = []
    day = window.since.replace(hour=0, minute=0, second=0, microsecond=0)
    while day < window.until:
        since, until = max(day, window.since), min(day + _DAY, window.until)
        at = closed.get(day.date())
        version = None if at is None else sum(t <= at for t in versions)
        place = bisect_right(changes, day)
        if place not in purchases:
            purchases[place] = settings.at(day).purchase_type
        regime = (purchases[place], version)
        if pieces and pieces[-1][2] == regime:
            pieces[-1] = (pieces[-1][0], until, regime, at)
        else:
            pieces.append((since, until, regime, at))
        day += _DAY
    for since, until, (purchase, _), at in pieces:
        prices = known.prices(cluster, purchase, at)
        yield Book(to_us(since), to_us(until), purchase, prices)


def _versions(work: Work, cluster: str) -> list[datetime]:
    """The instants at which the cluster's price book changed."""
    rows = work.rows(
        "SELECT DISTINCT unnest([loaded_at, retired_at]) AS t FROM price "
        "WHERE cluster = ? OR cluster IS NULL",
        [cluster],
    )
    return [row["t"] for row in rows if row["t"] is not None]


def _add(
    total: Installed, rows: list[dict[str, Any]], purchase: str, part: tuple[int, int, int]
) -> None:
    a, b, gpus = part
    amount = gpus * (b - a)
    total.gpu_us += amount
    row = in_force(rows, from_us(a), purchase)
    if row is None:
        total.unpriced_us += amount
        return
    key = (row["currency"], from_us(a))
    total.cost[key] = total.cost.get(key, 0) + amount * int(row["amount"] * 1_000_000)
