"""Open savings as Prometheus gauges, from the newest report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.store import Store
from scheduler_advisor.delivery.outbox import waiting
from scheduler_advisor.report.saved import newest_report, open_savings

HOURS_PER_WEEK = 168


class AdviceCollector(Collector):
    """Weekly savings that are still open, by kind, and when the newest report was made.

    Recommendations that overlap are in it each with its own amount: do not add the kinds up.
    """

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock

    def collect(self) -> Iterable[Metric]:
        """No savings while there is no report: absent is unknown."""
        yield from self._deliveries()
        with self._store.work() as work:
            report = newest_report(work)
            savings = open_savings(work, self._clock()) if report is not None else []
        if report is None:
            return
        gpus = GaugeMetricFamily(
            "unstrand_advice_open_saving_gpus",
            "GPUs that open recommendations would free on average (modelled; overlaps included).",
            labels=["kind", "basis"],
        )
        cost = GaugeMetricFamily(
            "unstrand_advice_open_saving_cost_per_week",
            "Money a week that open recommendations are worth (modelled; overlaps included).",
            labels=["kind", "basis", "currency"],
        )
        count = GaugeMetricFamily(
            "unstrand_advice_open_recommendations",
            "Open recommendations.",
            labels=["kind", "basis"],
        )
        for saving in savings:
            labels = [saving.kind, saving.basis]
            gpus.add_metric(labels, saving.gpu_hours / HOURS_PER_WEEK)
            count.add_metric(labels, saving.recommendations)
            if saving.cost is not None and saving.currency is not None:
                cost.add_metric([*labels, saving.currency], float(saving.cost))
        yield from (gpus, cost, count)
        made = GaugeMetricFamily(
            "unstrand_advice_report_timestamp_seconds", "When the newest report was made."
        )
        made.add_metric([], report["ts"].timestamp())
        yield made

    def _deliveries(self) -> Iterable[Metric]:
        """What has not arrived, by channel; a receiver's name stays out of the labels."""
        with self._store.work() as work:
            open_ = waiting(work, self._clock())
        count = GaugeMetricFamily(
            "unstrand_deliveries_waiting",
            "Reports and notes that have not arrived yet, by channel.",
            labels=["channel"],
        )
        tries = GaugeMetricFamily(
            "unstrand_delivery_attempts_max",
            "Most failed attempts of one that has not arrived yet, by channel.",
            labels=["channel"],
        )
        for channel in ("mail", "nudge", "webhook"):
            own = [each.attempts for each in open_ if each.parcel.channel == channel]
            count.add_metric([channel], len(own))
            tries.add_metric([channel], max(own, default=0))
        yield from (count, tries)
