"""What the service says about itself in Prometheus' words; a registry of its own."""

from __future__ import annotations

import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from collector.exporter.node import NodeExporter
from scheduler_advisor.running.runs import runs_of
from unstrand.advice_metrics import AdviceCollector
from unstrand.service.core import Service


class RequestFigures:
    """Requests by area, method and status, and how long they took."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "unstrand_http_requests",
            "Requests answered, by area of the service.",
            ["area", "method", "code"],
            registry=registry,
        )
        self.duration = Histogram(
            "unstrand_http_request_duration_seconds",
            "Time to answer a request, by area of the service.",
            ["area"],
            buckets=(0.005, 0.02, 0.1, 0.5, 2, 10),
            registry=registry,
        )


class RequestMeter:
    """Counts what is answered. Areas, not paths: a path from outside must not make a new series."""

    def __init__(self, app: ASGIApp, figures: RequestFigures) -> None:
        self._app = app
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        code = "500"

        async def observe(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = str(message["status"])
            await send(message)

        area, started = _area(scope["path"]), time.perf_counter()
        try:
            await self._app(scope, receive, observe)
        finally:
            self._figures.requests.labels(area, _method(scope["method"]), code).inc()
            self._figures.duration.labels(area).observe(time.perf_counter() - started)


class ServiceCollector(Collector):
    """Writer, background tasks and store at the moment of the scrape."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterable[Metric]:
        """One family per figure, built from state; what is unknown is absent."""
        yield _gauge("unstrand_build_info", "Version of this service.", 1, version=_version())
        yield _gauge(
            "unstrand_service_start_time_seconds",
            "When this service started, as Unix time.",
            self._service.started_at.timestamp(),
        )
        yield from self._store()
        yield from self._writer()
        yield from self._tasks()
        yield self._long_work()

    def _store(self) -> Iterable[Metric]:
        path = Path(self._service.store.path)
        if path.exists():
            yield _gauge("unstrand_store_size_bytes", "Size of the store.", path.stat().st_size)

    def _writer(self) -> Iterable[Metric]:
        writer, figures = self._service.writer, self._service.writer.figures
        yield _gauge(
            "unstrand_writer_waiting_batches", "Batches taken in, not yet written.", writer.waiting
        )
        batches = CounterMetricFamily(
            "unstrand_writer_batches", "Batches by what became of them.", labels=["result"]
        )
        batches.add_metric(["written"], figures.batches)
        batches.add_metric(["failed"], figures.failed)
        batches.add_metric(["refused"], figures.refused)
        yield batches
        yield CounterMetricFamily("unstrand_writer_rows", "Rows written.", value=figures.rows)
        yield CounterMetricFamily(
            "unstrand_writer_commits", "Transactions committed.", value=figures.commits
        )
        yield CounterMetricFamily(
            "unstrand_writer_commit_seconds", "Time spent in transactions.", value=figures.commit_s
        )

    def _long_work(self) -> Metric:
        """Reports and what-ifs that work now."""
        family = GaugeMetricFamily(
            "unstrand_long_work_running", "Long work that runs now, by kind.", labels=["kind"]
        )
        working = runs_of(self._service.store, self._service.clock).running()
        for kind in ("advice", "calibration", "whatif"):
            family.add_metric([kind], sum(run.kind == kind for run in working))
        return family

    def _tasks(self) -> Iterable[Metric]:
        runs = CounterMetricFamily(
            "unstrand_task_runs", "Runs of background tasks.", labels=["task", "result"]
        )
        last_ok = GaugeMetricFamily(
            "unstrand_task_last_success_timestamp_seconds",
            "End of the last good run of a background task, as Unix time.",
            labels=["task"],
        )
        took = GaugeMetricFamily(
            "unstrand_task_last_duration_seconds",
            "Length of the last run of a background task.",
            labels=["task"],
        )
        for task, figures in self._service.schedule.figures.items():
            runs.add_metric([task, "good"], figures.runs - figures.failures)
            runs.add_metric([task, "failed"], figures.failures)
            if figures.last_ok_at is not None:
                last_ok.add_metric([task], figures.last_ok_at.timestamp())
            if figures.last_duration_s is not None:
                took.add_metric([task], figures.last_duration_s)
        yield from (runs, last_ok, took)


def service_registry(service: Service) -> tuple[CollectorRegistry, RequestFigures]:
    """A registry with everything the service exports, and the request figures in it."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    registry.register(ServiceCollector(service))
    registry.register(service.ledger_metrics)
    registry.register(AdviceCollector(service.store, service.clock))
    collector = service.collector
    if collector is not None:
        registry.register(NodeExporter(lambda: collector.picture, collector.identity.node))
    return registry, RequestFigures(registry)


def _gauge(name: str, text: str, value: float, **labels: str) -> Metric:
    family = GaugeMetricFamily(name, text, labels=list(labels))
    family.add_metric(list(labels.values()), value)
    return family


def _area(path: str) -> str:
    for prefix, area in (("/api/", "api"), ("/metrics", "metrics"), ("/_stcore", "pages")):
        if path.startswith(prefix):
            return area
    return "health" if path in {"/healthz", "/readyz"} else "pages"


def _method(method: str) -> str:
    return method if method in {"GET", "POST", "HEAD", "OPTIONS"} else "other"


def _version() -> str:
    return version("unstrand")
