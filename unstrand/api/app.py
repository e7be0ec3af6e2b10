"""The API under /api/v1: everything that a page shows, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Depends, FastAPI

from unstrand.api import (
    adjustments,
    advice,
    backup,
    books,
    calibration,
    checkpoints,
    cluster,
    docs,
    errors,
    handover,
    health,
    imports,
    ingest,
    invoices,
    measurements,
    money,
    reports,
    rules,
    runs,
    sheet_books,
    statements,
    status,
    whatif,
)
from unstrand.api.limits import limited

if TYPE_CHECKING:
    from unstrand.service.core import Service


def api_app(service: Service) -> FastAPI:
    """The API over one service; its documentation page asks nothing of any other host."""
    app = FastAPI(
        title="unstrand",
        version="1",
        description="Where every GPU-hour and dollar of a cluster went.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.service = service
    errors.install(app)
    turn = [Depends(limited())]
    for questions in (reports, money, statements, measurements, advice, handover, health, cluster):
        app.include_router(questions.router, dependencies=turn)
    for part in (
        status,
        ingest,
        books,
        sheet_books,
        rules,
        checkpoints,
        adjustments,
        invoices,
        imports,
        backup,
    ):
        app.include_router(part.router)
    # Replays take longer than a question may: they work in processes and are followed or awaited.
    for long in (whatif.router, runs.router, calibration.router, advice.making):
        app.include_router(long)
    docs.install(app)
    return app
