"""What this service is, what it holds and how it fares."""

from __future__ import annotations

from datetime import datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, cast

from fastapi import APIRouter, Request
from pydantic import BaseModel

from analytics.health.span import store_kind
from scheduler_advisor.delivery.outbox import waiting
from scheduler_advisor.running.runs import runs_of

if TYPE_CHECKING:
    from collector.agent.local import LocalCollector
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


class CollectorStatus(BaseModel):
    """What records this machine's GPUs does, in a state and a sentence."""

    state: str
    words: str
    ticks: int
    undelivered: int


class LongWork(BaseModel):
    """A report or what-if that works now; ``share`` of it is done, 0 to 1."""

    run_id: str
    kind: str
    stage: str
    share: float


class WaitingDelivery(BaseModel):
    """A report or note that has not arrived: failed attempts, the last error, the next try."""

    channel: str
    receiver: str
    attempts: int
    error: str | None
    next_at: datetime


class Status(BaseModel):
    """The service at this moment; ``kind`` is demo, or site for real facts."""

    version: str
    kind: str
    store: str
    started_at: datetime
    collector: CollectorStatus | None
    writer: WriterStatus
    tasks: dict[str, TaskStatus]
    long_work: list[LongWork]
    deliveries: list[WaitingDelivery]


def service_of(request: Request) -> Service:
    """The service that the request came to."""
    return cast("Service", request.app.state.service)


@router.get("/status")
def status(request: Request) -> Status:
    """What this service is, what it holds and how it fares."""
    service = service_of(request)
    figures = service.writer.figures
    return Status(
        version=version("unstrand"),
        kind=store_kind(service.store),
        store=service.store.path,
        started_at=service.started_at,
        collector=_collector(service.collector),
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
        long_work=[
            LongWork(run_id=run.run_id, kind=run.kind, stage=run.stage, share=round(run.share, 3))
            for run in runs_of(service.store, service.clock).running()
        ],
        deliveries=_deliveries(service),
    )


def _deliveries(service: Service) -> list[WaitingDelivery]:
    with service.store.work() as work:
        return [
            WaitingDelivery(
                channel=each.parcel.channel, receiver=each.parcel.receiver,
                attempts=each.attempts, error=each.error, next_at=each.next_at,
            )
            for each in waiting(work, service.clock())
        ]  # fmt: skip


def _collector(collector: LocalCollector | None) -> CollectorStatus | None:
    if collector is None:
        return None
    picture = collector.picture
    return CollectorStatus(
        state=str(picture.state),
        words=collector.words(),
        ticks=picture.ticks,
        undelivered=picture.undelivered,
    )
