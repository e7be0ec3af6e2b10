"""What this service is, what it holds and how it fares."""

from __future__ import annotations

from datetime import datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, cast

from fastapi import APIRouter, Request
from pydantic import BaseModel

if TYPE_CHECKING:
    from unstrand.service.core import Service

router = APIRouter(tags=["service"])


class WriterStatus(BaseModel):
    """The writer's figures since the start."""

    alive: bool
    waiting_batches: int
    batches: int
    rows: int
    failed_batches: int
    refused_batches: int


class TaskStatus(BaseModel):
    """A background task; ``last_error`` is null after a good run."""

    runs: int
    failures: int
    last_ok_at: datetime | None
    last_duration_s: float | None
    last_error: str | None


class Status(BaseModel):
    """The service at this moment; ``kind`` is demo, or site for real facts."""

    version: str
    kind: str
    store: str
    started_at: datetime
    writer: WriterStatus
    tasks: dict[str, TaskStatus]


def service_of(request: Request) -> Service:
    """The service that the request came to."""
    return cast("Service", request.app.state.service)


@router.get("/status")
def status(request: Request) -> Status:
    """What this service is, what it holds and how it fares."""
    service = service_of(request)
    figures = service.writer.figures
    kind = service.store.value("SELECT value FROM store_info WHERE key = 'kind'")
    return Status(
        version=version("unstrand"),
        kind=kind or "site",
        store=service.store.path,
        started_at=service.started_at,
        writer=WriterStatus(
            alive=service.writer.alive,
            waiting_batches=service.writer.waiting,
            batches=figures.batches,
            rows=figures.rows,
            failed_batches=figures.failed,
            refused_batches=figures.refused,
        ),
        tasks={
            name: TaskStatus(
                runs=task.runs,
                failures=task.failures,
                last_ok_at=task.last_ok_at,
                last_duration_s=task.last_duration_s,
                last_error=task.last_error,
            )
            for name, task in service.schedule.figures.items()
        },
    )
