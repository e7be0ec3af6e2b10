"""Cached answers for the pages; the only place that caches.

Every function takes the store's path (a cache is shared by all stores of the process) and forgets
after half a minute, so a page is never older than that. Scripts of several viewers share answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import streamlit as st

from analytics import reports
from analytics.health import broken as broken_facts
from analytics.health import conflicts as conflict_facts
from analytics.health import gaps as gap_facts
from analytics.health import sources as source_facts
from analytics.health import span as span_facts
from analytics.questions.blast_radius import Blast, blast_radius
from analytics.questions.device_health import NodeHealth, device_health
from analytics.questions.fleet_map import FleetCell, fleet_map
from analytics.questions.fragmentation import FragmentedHour, fragmentation
from analytics.questions.job_causes import JobCause, job_causes
from analytics.questions.job_samples import JobSample, job_samples
from analytics.questions.jobs import JobRecord
from analytics.questions.jobs import jobs as job_records
from analytics.questions.mig_layout import MigInstance, mig_layout
from analytics.questions.network_by_rack import RackHour, network_by_rack
from analytics.questions.nvlink_islands import Island, nvlink_islands
from analytics.questions.queue_at import QueuedJob, queue_at
from analytics.questions.run_owners import RunOwner, run_owners
from analytics.reports.evidence import evidence_report
from analytics.reports.stranding_at import Shape, StartAnswer, stranding_at
from analytics.window import Window
from dashboard.connection import accounted, store_at
from scheduler_advisor import window as advisor
from scheduler_advisor.job_card import JobCard, job_card
from scheduler_advisor.measurements.team_waits import TeamWaits, by_team
from scheduler_advisor.measurements.waits import JobWait, job_waits

TTL_S = 30

Span = span_facts.FactsSpan
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Report:
    """A report's rows and what holds for all; ``currency`` is empty where nothing is priced.

    Hours and costs are Decimal; a cost is None where nothing of the row is priced.
    """

    rows: Sequence[Row]
    total: Row
    currency: str
    coverage_ratio: float | None
    price_book: str | None
    adjustments: Sequence[Row] = ()


@st.cache_data(ttl=TTL_S, show_spinner=False)
def span(path: str, cluster: str | None = None) -> Span | None:
    """What the store holds; None = nothing."""
    return span_facts.facts_span(store_at(path), cluster)


def has_changed(path: str, shown: Span | None) -> bool:
    """Whether the store holds something else than ``shown``; pages drawn from now on know it."""
    now = span_facts.facts_span(store_at(path))
    if now == shown:
        return False
    if now != span(path):
        span.clear()
    return True


@st.cache_data(ttl=TTL_S, show_spinner=False)
def currencies(path: str) -> tuple[str, ...]:
    """In which prices are, or which a dated rate leads to."""
    rows = store_at(path).rows(
        "SELECT currency FROM price UNION SELECT to_currency FROM currency_rate ORDER BY 1"
    )
    return tuple(row["currency"] for row in rows)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def kind(path: str) -> str:
    """``demo`` or ``site``."""
    return span_facts.store_kind(store_at(path))


@st.cache_data(ttl=TTL_S, show_spinner=False)
def cost(
    path: str,
    window: Window,
    by: tuple[str, ...],
    cluster: str | None,
    currency: str | None = None,
) -> Report:
    """The cost report, as the API and the command line give it."""
    return _shown(
        reports.cost_report(
            accounted(path, window, cluster), window, by, cluster=cluster, currency=currency
        )
    )


@st.cache_data(ttl=TTL_S, show_spinner=False)
def ledger(
    path: str,
    window: Window,
    by: tuple[str, ...],
    cluster: str | None,
    currency: str | None = None,
) -> Report:
    """The ledger report, as the API and the command line give it."""
    return _shown(
        reports.ledger_report(
            accounted(path, window, cluster), window, by, cluster=cluster, currency=currency
        )
    )


@st.cache_data(ttl=TTL_S, show_spinner=False)
def broken(path: str, at: datetime, cluster: str | None) -> list[broken_facts.Broken]:
    """What is out of order at ``at``."""
    return broken_facts.broken_at(store_at(path), at, cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def gaps(path: str, window: Window, cluster: str | None) -> list[gap_facts.Gap]:
    """Stretches of a node's time that are not known."""
    return gap_facts.gaps(store_at(path), window, cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def conflicts(path: str, window: Window, cluster: str | None) -> list[conflict_facts.Conflict]:
    """Facts that contradict each other."""
    return conflict_facts.conflicts(store_at(path), window, cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def unpriced(path: str, window: Window, cluster: str | None) -> list[conflict_facts.Unpriced]:
    """GPU models without a price."""
    return conflict_facts.unpriced(store_at(path), window, cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def sources(path: str, cluster: str | None) -> list[source_facts.Source]:
    """Where facts came from."""
    return source_facts.sources(store_at(path), cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def stranding(
    path: str,
    window: Window,
    by: tuple[str, ...],
    cluster: str | None,
    currency: str | None = None,
) -> Report:
    """The stranding report, as the API and the command line give it."""
    return _shown(
        reports.stranding_report(
            accounted(path, window, cluster), window, by, cluster=cluster, currency=currency
        )
    )


@st.cache_data(ttl=TTL_S, show_spinner=False)
def fragmented(path: str, window: Window, cluster: str | None) -> list[FragmentedHour]:
    """Fragmentation of each cluster, hour by hour."""
    return fragmentation(store_at(path), window, "cluster", cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def start(path: str, at: datetime, shape: Shape, cluster: str | None) -> StartAnswer:
    """Whether a job of ``shape`` could start at ``at``, and what is in its way."""
    return stranding_at(store_at(path), at, shape, cluster=cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def owners(path: str, run_ids: tuple[str, ...], cluster: str | None) -> dict[str, RunOwner]:
    """Whom runs belong to, by run."""
    return {run.run_id: run for run in run_owners(store_at(path), run_ids, cluster)}


@st.cache_data(ttl=TTL_S, show_spinner=False)
def queue(path: str, at: datetime, cluster: str | None) -> list[QueuedJob]:
    """Who waited at ``at``, the first in order first."""
    return queue_at(store_at(path), at, cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def waits(path: str, window: Window, cluster: str | None) -> list[JobWait]:
    """Every GPU job that became eligible in the window, with its wait."""
    with store_at(path).work() as work:
        return job_waits(
            work, advisor.Window(window.since, window.until, window.time_zone), cluster
        )


@st.cache_data(ttl=TTL_S, show_spinner=False)
def team_waits(path: str, window: Window, cluster: str | None) -> list[TeamWaits]:
    """Waits by team."""
    with store_at(path).work() as work:
        return by_team(work, waits(path, window, cluster))


@st.cache_data(ttl=TTL_S, show_spinner=False)
def jobs(path: str, window: Window, cluster: str | None) -> list[JobRecord]:
    """Every GPU job that waited or ran in the window."""
    return job_records(store_at(path), window, cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def job(path: str, job_id: str, at: datetime, cluster: str | None) -> JobCard:
    """A job's card over the ledger as it stands: pages never build it.

    Raises AdvisorError for a job that is not known, or known in several clusters.
    """
    return job_card(store_at(path), job_id, at, cluster, account=lambda *_: None)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def samples(path: str, cluster: str, job_id: str, step_s: int) -> list[JobSample]:
    """What was measured on a job's GPUs, in steps."""
    return job_samples(store_at(path), cluster, job_id, step_s)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def causes(path: str, cluster: str, job_id: str) -> list[JobCause]:
    """Free GPU time beside a job."""
    return job_causes(store_at(path), cluster, job_id)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def evidence(path: str, window: Window, cluster: str, job_id: str) -> Sequence[Row]:
    """What a job's lost or suspected GPU time rests on."""
    return evidence_report(store_at(path), window, cluster=cluster, job=job_id).rows


@st.cache_data(ttl=TTL_S, show_spinner=False)
def fleet(path: str, window: Window, step_h: int, cluster: str | None) -> list[FleetCell]:
    """What every node's GPUs were in, in steps of hours."""
    return fleet_map(store_at(path), window, step_h, cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def node_health(path: str, window: Window, cluster: str | None) -> list[NodeHealth]:
    """Faults, memory errors, slowed clocks and temperature by node."""
    return device_health(store_at(path), window, cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def mig(path: str, at: datetime, cluster: str | None) -> list[MigInstance]:
    """How boards were cut into MIG instances."""
    return mig_layout(store_at(path), at, cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def islands(path: str, at: datetime, cluster: str | None) -> list[Island]:
    """Which GPUs reach each other over NVLink, with their traffic in the hour before."""
    return nvlink_islands(store_at(path), at, cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def network(path: str, window: Window, cluster: str | None) -> list[RackHour]:
    """How crowded each rack's network is, hour by hour."""
    return network_by_rack(store_at(path), window, cluster)


@st.cache_data(ttl=TTL_S, show_spinner=False)
def blast(path: str, at: datetime, cluster: str | None) -> list[Blast]:
    """What would stop if a part of the cluster failed at ``at``."""
    return blast_radius(store_at(path), at, cluster)


def _shown(report: reports.Report) -> Report:
    return Report(
        rows=report.rows,
        total=report.total,
        currency=report.currency or "",
        coverage_ratio=report.coverage_ratio,
        price_book=report.price_book,
        adjustments=report.to_dict()["adjustments"] if report.adjustments else (),
    )
