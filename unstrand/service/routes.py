"""What the process answers beside pages and API: is it alive, is it ready, its metrics."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from unstrand.service.core import Service


def service_routes(service: Service, registry: CollectorRegistry) -> list[BaseRoute]:
    """/healthz: the process answers. /readyz: store and writer work. /metrics: Prometheus text."""

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "alive"}, headers={"x-unstrand-pid": str(os.getpid())})

    async def readyz(_: Request) -> Response:
        reasons = await run_in_threadpool(service.not_ready)
        return JSONResponse(
            {"status": "not ready" if reasons else "ready", "reasons": reasons},
            status_code=503 if reasons else 200,
        )

    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        body = await run_in_threadpool(encode, registry)
        return Response(body, media_type=content_type)

    return [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]
