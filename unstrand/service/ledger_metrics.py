"""The last known day of the ledger for Prometheus: cost per team, GPU time per class, coverage.

Worked out in the background, so that a scrape asks the store nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from analytics.health.span import facts_span
from analytics.ledger import clusters
from analytics.reports import cost_report, ledger_report
from analytics.window import Window
from collector.store import Store

DAY = timedelta(days=1)
_SECONDS = Decimal(3600)


@dataclass(frozen=True, slots=True)
class LastDay:
    """One cluster's last 24 hours that stand in the ledger."""

    cluster: str
    until: datetime
    coverage_ratio: float | None
    currency: str | None
    cost: dict[str, Decimal] = field(default_factory=dict)
    gpu_seconds: dict[str, Decimal] = field(default_factory=dict)


class LedgerCollector(Collector):
    """Serves what `refresh` last found; a cluster without a ledger has no series."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._days: Sequence[LastDay] = ()

    def refresh(self) -> None:
        """Work the figures out anew."""
        found = (last_day(self._store, cluster) for cluster in clusters(self._store))
        self._days = [day for day in found if day is not None]

    def collect(self) -> Iterable[Metric]:
        """Gauges over the last known day; team is empty for what the platform pays."""
        until = _family("until_timestamp_seconds", "How far the ledger reaches, as Unix time.")
        coverage = _family(
            "last_day_coverage_ratio",
            "Share of the last known day's GPU time with known holder and activity.",
        )
        cost = _family(
            "last_day_cost", "Cost of the last known day, by who pays.", "team", "currency"
        )
        time = _family(
            "last_day_gpu_seconds", "GPU time of the last known day, by ledger class.", "class"
        )
        for day in self._days:
            until.add_metric([day.cluster], day.until.timestamp())
            if day.coverage_ratio is not None:
                coverage.add_metric([day.cluster], day.coverage_ratio)
            for team, amount in day.cost.items():
                cost.add_metric([day.cluster, team, day.currency or ""], float(amount))
            for name, seconds in day.gpu_seconds.items():
                time.add_metric([day.cluster, name], float(seconds))
        return (until, coverage, cost, time)


def last_day(store: Store, cluster: str) -> LastDay | None:
    """The figures of the 24 hours before the ledger's end, or None without a ledger."""
    span = facts_span(store, cluster)
    if span is None or span.ledger_until is None:
        return None
    # Whole hours: a report over a part of an hour works it out from facts each time.
    until = min(span.ledger_until, span.until).replace(minute=0, second=0, microsecond=0)
    window = Window(until - DAY, until)
    by_team = cost_report(store, window, ("team",), cluster=cluster)
    by_class = ledger_report(store, window, cluster=cluster)
    return LastDay(
        cluster=cluster,
        until=until,
        coverage_ratio=by_class.coverage_ratio,
        currency=by_team.currency,
        cost={row["team"] or "": row["cost"] for row in by_team.rows if row["cost"] is not None},
        gpu_seconds={row["class"]: row["gpu_hours"] * _SECONDS for row in by_class.rows},
    )


def _family(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"unstrand_ledger_{name}", text, labels=["cluster", *labels])
