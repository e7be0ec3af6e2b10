"""The four measurements of every report, as JSON of the same shape as on the command line."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field

from scheduler_advisor.measurements.documents import DOCUMENTS, activity_document
from unstrand.api.query import WindowQuery, asked_window, within_rows
from unstrand.api.status import service_of

router = APIRouter(prefix="/report", tags=["measurements"])


class MeasureQuery(WindowQuery):
    """A measurement over a window."""

    rows: bool = Field(False, description="One row per job or run, not per group.")


class WaitQuery(MeasureQuery):
    """Waits over a window."""

    by: Literal["queue", "hour", "team"] = Field(
        "queue", description="Queue and size, hour of day, or team."
    )


@router.get("/waits")
def waits(request: Request, query: Annotated[WaitQuery, Query()]) -> dict[str, Any]:
    """How long jobs wait, by queue and size, by hour of the day or by team."""
    return _document(request, "waits", query, by=query.by)


@router.get("/spread")
def spread(request: Request, query: Annotated[MeasureQuery, Query()]) -> dict[str, Any]:
    """Multi-GPU runs on more nodes or leaf switches than they needed."""
    return _document(request, "spread", query)


@router.get("/breakers")
def breakers(request: Request, query: Annotated[MeasureQuery, Query()]) -> dict[str, Any]:
    """Small jobs that break up big nodes."""
    return _document(request, "breakers", query)


@router.get("/checkpoints")
def checkpoints(request: Request, query: Annotated[MeasureQuery, Query()]) -> dict[str, Any]:
    """How often checkpoints are written and how long recovery takes, where marks say so."""
    return _document(request, "checkpoints", query)


@router.get("/repeats")
def repeats(request: Request, query: Annotated[MeasureQuery, Query()]) -> dict[str, Any]:
    """Jobs that run again and again, fast one day and slow another, against their placement."""
    return _document(request, "repeats", query)


@router.get("/reclaims")
def reclaims(request: Request, query: Annotated[MeasureQuery, Query()]) -> dict[str, Any]:
    """How fast lent GPUs came back to whoever has a quota, and what that cost those stopped."""
    return _document(request, "reclaims", query)


@router.get("/activity")
def activity(request: Request, query: Annotated[WindowQuery, Query()]) -> dict[str, Any]:
    """Held GPU-hours by how active they were: the distribution behind the mean."""
    service = service_of(request)
    window = asked_window(service.store, query)
    service.keeper.window(window, query.cluster)
    return activity_document(service.store, window, query.cluster, rows=False)


def _document(request: Request, name: str, query: MeasureQuery, **more: str) -> dict[str, Any]:
    store = service_of(request).store
    window = asked_window(store, query)
    document = DOCUMENTS[name](store, window, query.cluster, rows=query.rows, **more)
    within_rows(document["rows"], ("rows",))
    return document
