"""What the pages Fleet, Jobs, Queue and Stranding show beside the reports, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field

from analytics.health.span import facts_span
from analytics.questions.blast_radius import Blast, blast_radius
from analytics.questions.device_health import NodeHealth, device_health
from analytics.questions.fleet_map import FleetCell, fleet_map
from analytics.questions.job_causes import JobCause, job_causes
from analytics.questions.job_samples import JobSample, job_samples
from analytics.questions.jobs import JobRecord, jobs
from analytics.questions.mig_layout import MigInstance, mig_layout
from analytics.questions.network_by_rack import RackHour, network_by_rack
from analytics.questions.nvlink_islands import Island, nvlink_islands
from analytics.questions.queue_at import queue_at
from analytics.reports.stranding_at import Shape, stranding_at
from collector.store import Store
from unstrand.api.query import (
    ClusterQuery,
    InstantQuery,
    WindowQuery,
    asked_instant,
    asked_window,
    known_cluster,
    read_or_refuse,
    within_rows,
)
from unstrand.api.status import service_of

router = APIRouter(prefix="/cluster", tags=["cluster"])
WHERE_AT = "query parameter at"


class FleetQuery(WindowQuery):
    """A map of the fleet over a window."""

    step_h: int = Field(4, ge=1, le=168, description="Hours per cell, from the window's start.")


class StartQuery(InstantQuery):
    """A job that somebody would like to start."""

    gpus: int = Field(ge=1, le=64, description="GPUs on each node.")
    nodes: int = Field(1, ge=1, le=4096, description="Nodes.")
    cpus: int = Field(0, ge=0, description="CPUs on each node.")
    mem_mib: int = Field(0, ge=0, description="Memory on each node, MiB.")
    gpu_model: str | None = Field(None, description="Only GPUs of this model.")
    partition: str | None = Field(None, description="Only nodes of this partition.")
    topology: str | None = Field(None, description="All nodes under one leaf, rack or spine.")


class SampleQuery(ClusterQuery):
    """Samples of one job."""

    step_s: int = Field(300, ge=1, le=86400, description="Seconds per row and device.")


@router.get("/fleet")
def fleet(request: Request, query: Annotated[FleetQuery, Query()]) -> list[FleetCell]:
    """GPU-hours per ledger class of every node, step by step."""
    store = service_of(request).store
    found = fleet_map(store, asked_window(store, query), query.step_h, query.cluster)
    return list(within_rows(found, ("node", "step_h")))


@router.get("/health")
def health(request: Request, query: Annotated[WindowQuery, Query()]) -> list[NodeHealth]:
    """Faults, memory errors, slowed clocks and temperature by node."""
    store = service_of(request).store
    return device_health(store, asked_window(store, query), query.cluster)


@router.get("/mig")
def mig(request: Request, query: Annotated[InstantQuery, Query()]) -> list[MigInstance]:
    """How boards were cut into MIG instances at an instant."""
    store = service_of(request).store
    return mig_layout(store, _moment(store, query), query.cluster)


@router.get("/nvlink")
def nvlink(request: Request, query: Annotated[InstantQuery, Query()]) -> list[Island]:
    """Which GPUs reached each other over NVLink, and what they moved in the hour before."""
    store = service_of(request).store
    return nvlink_islands(store, _moment(store, query), query.cluster)


@router.get("/network")
def network(request: Request, query: Annotated[WindowQuery, Query()]) -> list[RackHour]:
    """How crowded each rack's network was, hour by hour, over the last week of the window."""
    store = service_of(request).store
    return network_by_rack(store, asked_window(store, query), query.cluster)


@router.get("/blast-radius")
def blast(request: Request, query: Annotated[InstantQuery, Query()]) -> list[Blast]:
    """What would have stopped if a node, rack, leaf or spine had failed at an instant."""
    store = service_of(request).store
    return blast_radius(store, _moment(store, query), query.cluster)


@router.get("/jobs")
def job_list(request: Request, query: Annotated[WindowQuery, Query()]) -> list[JobRecord]:
    """GPU jobs that waited or ran in the window; their cost is report/cost by cluster,job."""
    store = service_of(request).store
    found = jobs(store, asked_window(store, query), query.cluster)
    return list(within_rows(found, ("job",)))


@router.get("/jobs/{cluster_name}/{job_id}/samples")
def samples(
    request: Request, cluster_name: str, job_id: str, query: Annotated[SampleQuery, Query()]
) -> list[JobSample]:
    """What was measured on a job's GPUs, device by device, in steps."""
    store = service_of(request).store
    known_cluster(store, cluster_name)
    found = job_samples(store, cluster_name, job_id, query.step_s)
    return list(within_rows(found, ("step_s", "device")))


@router.get("/jobs/{cluster_name}/{job_id}/causes")
def causes(request: Request, cluster_name: str, job_id: str) -> list[JobCause]:
    """Free GPU time that the job stranded, or that stood free while it waited; modelled."""
    store = service_of(request).store
    known_cluster(store, cluster_name)
    return job_causes(store, cluster_name, job_id)


@router.get("/queue")
def queue(request: Request, query: Annotated[InstantQuery, Query()]) -> list[dict[str, Any]]:
    """GPU jobs that waited at an instant, the first in order first."""
    store = service_of(request).store
    return [asdict(job) for job in queue_at(store, _moment(store, query), query.cluster)]


@router.get("/start")
def start(request: Request, query: Annotated[StartQuery, Query()]) -> dict[str, Any]:
    """Why a job of a shape cannot start at an instant, and the smallest release that lets it."""
    store = service_of(request).store
    known_cluster(store, query.cluster)
    at = asked_instant(store, query.cluster, query.at, WHERE_AT)
    asked = query.model_dump(exclude={"at", "cluster"})
    return read_or_refuse(
        "query parameters of the shape",
        lambda: stranding_at(store, at, Shape(**asked), cluster=query.cluster),
    ).to_dict()


def _moment(store: Store, query: InstantQuery) -> datetime:
    """The instant asked for. Facts are known up to their end, not at it: asked for that instant,
    or for none, people mean the last that is known."""
    known_cluster(store, query.cluster)
    at = asked_instant(store, query.cluster, query.at, WHERE_AT)
    known = facts_span(store, query.cluster)
    return at - timedelta(microseconds=1) if known is not None and at == known.until else at
