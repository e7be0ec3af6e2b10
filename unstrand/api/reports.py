"""The reports of the command line, as JSON of the same shape."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field

from analytics import reports
from analytics.questions.fragmentation import fragmentation_report
from analytics.reports.evidence import evidence_report
from analytics.window import Window
from unstrand.api.query import ReportQuery, WindowQuery, asked_window, read_or_refuse, within_rows
from unstrand.api.status import service_of

router = APIRouter(prefix="/report", tags=["reports"])
Asked = Annotated[ReportQuery, Query()]
WHERE = "query parameters by, cluster and currency"


class JobsQuery(WindowQuery):
    """The jobs of a window."""

    currency: str | None = Field(None, description="ISO 4217 code, joined by dated rates.")


def _accounted(request: Request, query: WindowQuery) -> Window:
    """The window asked for, with every hour of it in the ledger."""
    service = service_of(request)
    window = asked_window(service.store, query)
    service.keeper.window(window, query.cluster)
    return window


@router.get("/cost")
def cost(request: Request, query: Asked) -> dict[str, Any]:
    """What each group held, used and pays; every grouping adds up to the same total."""
    store, keys = service_of(request).store, query.keys("team")
    window = _accounted(request, query)
    report = read_or_refuse(
        WHERE,
        lambda: reports.cost_report(
            store,
            window,
            keys,
            cluster=query.cluster,
            currency=query.currency,
            as_of=query.as_of,
        ),
    )
    within_rows(report.rows, keys)
    return report.to_dict()


@router.get("/efficiency")
def efficiency(request: Request, query: Asked) -> dict[str, Any]:
    """Occupancy, efficiency, goodput and the cost of a used GPU-hour per group."""
    store, keys = service_of(request).store, query.keys("gpu_model")
    window = _accounted(request, query)
    report = read_or_refuse(
        WHERE,
        lambda: reports.efficiency_report(
            store,
            window,
            keys,
            cluster=query.cluster,
            currency=query.currency,
            as_of=query.as_of,
        ),
    )
    within_rows(report.rows, keys)
    return report.to_dict()


@router.get("/jobs")
def jobs(request: Request, query: Annotated[JobsQuery, Query()]) -> dict[str, Any]:
    """The GPU jobs of a window with what they held, used and cost, the dearest first."""
    store = service_of(request).store
    window = _accounted(request, query)
    report = read_or_refuse(
        WHERE,
        lambda: reports.jobs_report(store, window, cluster=query.cluster, currency=query.currency),
    )
    within_rows(report.rows, ("job",))
    return report.to_dict()


@router.get("/ledger")
def ledger(request: Request, query: Asked) -> dict[str, Any]:
    """GPU-hours and cost per ledger class, and the proof that they are all there is."""
    store, keys = service_of(request).store, query.keys("class")
    window = _accounted(request, query)
    report = read_or_refuse(
        WHERE,
        lambda: reports.ledger_report(
            store, window, keys, cluster=query.cluster, currency=query.currency
        ),
    )
    within_rows(report.rows, keys)
    return report.to_dict()


@router.get("/stranding")
def stranding(request: Request, query: Asked) -> dict[str, Any]:
    """Free GPUs that could not be used: by class, rule and the run that caused it or waited."""
    store, keys = service_of(request).store, query.keys("team")
    window = _accounted(request, query)
    report = read_or_refuse(
        WHERE,
        lambda: reports.stranding_report(
            store, window, keys, cluster=query.cluster, currency=query.currency
        ),
    )
    within_rows(report.rows, keys)
    return report.to_dict()


class FragmentationQuery(WindowQuery):
    """Fragmentation over time."""

    by: Literal["cluster", "rack", "node"] = Field("cluster", description="Of what.")


@router.get("/fragmentation")
def fragmented(request: Request, query: Annotated[FragmentationQuery, Query()]) -> dict[str, Any]:
    """Fragmentation F hour by hour, with the typical tasks that it is measured against."""
    store = service_of(request).store
    return fragmentation_report(store, _accounted(request, query), query.by, query.cluster)


class EvidenceQuery(WindowQuery):
    """What lost or suspected GPU time rests on."""

    job: str | None = Field(None, description="Only of this job.")


@router.get("/evidence")
def evidence(request: Request, query: Annotated[EvidenceQuery, Query()]) -> dict[str, Any]:
    """Runs that are suspected to hang or lost work: what was seen, and what to look at."""
    store = service_of(request).store
    window = _accounted(request, query)
    report = evidence_report(store, window, cluster=query.cluster, job=query.job)
    within_rows(report.rows, ("run_id",))
    return report.to_dict()


@router.get("/coverage")
def coverage(request: Request, query: Annotated[WindowQuery, Query()]) -> dict[str, Any]:
    """How much of the window is known, per node, and what keeps the rest in the dark."""
    store = service_of(request).store
    window = _accounted(request, query)
    return reports.coverage_report(store, window, cluster=query.cluster).to_dict()
