"""Whether the facts can be trusted, and what is broken now, as the pages show it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from analytics.health.broken import Broken, broken_at
from analytics.health.conflicts import Conflict, Unpriced, conflicts, unpriced
from analytics.health.gaps import Gap, gaps
from analytics.health.sources import Source, sources
from analytics.health.span import FactsSpan, facts_span
from unstrand.api.query import (
    ClusterQuery,
    InstantQuery,
    WindowQuery,
    asked_instant,
    asked_window,
    known_cluster,
)
from unstrand.api.status import service_of

router = APIRouter(prefix="/health", tags=["health"])
Cluster = Annotated[ClusterQuery, Query()]
Instant = Annotated[InstantQuery, Query()]
Asked = Annotated[WindowQuery, Query()]


@router.get("/span")
def span(request: Request, query: Cluster) -> FactsSpan | None:
    """From when to when something is known; null for an empty store."""
    store = service_of(request).store
    known_cluster(store, query.cluster)
    return facts_span(store, query.cluster)


@router.get("/broken")
def broken(request: Request, query: Instant) -> list[Broken]:
    """What is out of order at an instant."""
    store = service_of(request).store
    known_cluster(store, query.cluster)
    instant = asked_instant(store, query.cluster, query.at, "query parameter at")
    return broken_at(store, instant, query.cluster)


@router.get("/gaps")
def missing(request: Request, query: Asked) -> list[Gap]:
    """Stretches in which most of some nodes' time was not known, largest first, at most 500."""
    store = service_of(request).store
    return gaps(store, asked_window(store, query), query.cluster)


@router.get("/conflicts")
def contradictions(request: Request, query: Asked) -> list[Conflict]:
    """Facts that contradict each other and the rule that decided, largest first, at most 500."""
    store = service_of(request).store
    return conflicts(store, asked_window(store, query), query.cluster)


@router.get("/unpriced")
def without_price(request: Request, query: Asked) -> list[Unpriced]:
    """GPU models that were installed without a price."""
    store = service_of(request).store
    return unpriced(store, asked_window(store, query), query.cluster)


@router.get("/sources")
def origins(request: Request, query: Cluster) -> list[Source]:
    """Where facts came from and over what time."""
    store = service_of(request).store
    known_cluster(store, query.cluster)
    return sources(store, query.cluster)
