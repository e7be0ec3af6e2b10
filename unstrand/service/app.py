"""The ASGI application: pages at /, the API at /api/v1, health and metrics."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.types import ASGIApp

from dashboard.app import pages_app
from unstrand.api.app import api_app
from unstrand.service.core import Service
from unstrand.service.guard import HostGuard
from unstrand.service.metrics import RequestMeter, service_registry
from unstrand.service.routes import service_routes

log = logging.getLogger(__name__)


def service_app(service: Service) -> ASGIApp:
    """The application of one service; its lifespan starts and stops the service's work."""

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[dict[str, object]]:
        await run_in_threadpool(service.start)
        try:
            yield {}
        finally:
            await run_in_threadpool(service.stop)
            log.info("all taken batches are written, the store is closed")

    registry, meter = service_registry(service)
    return pages_app(
        service.store,
        account=service.keeper.past_the_facts,
        routes=[*service_routes(service, registry), Mount("/api/v1", api_app(service))],
        lifespan=lifespan,
        middleware=[Middleware(HostGuard), Middleware(RequestMeter, figures=meter)],
    )
