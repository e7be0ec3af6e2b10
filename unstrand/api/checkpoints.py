"""How often jobs write checkpoints, as it is declared."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from analytics.checkpoint_intervals import (
    CheckpointClass,
    checked_interval_s,
    declare_interval,
    interval_rows,
    remove_interval,
)
from analytics.window import parse_time
from unstrand.api.query import known_cluster, read_or_refuse
from unstrand.api.status import service_of
from unstrand.api.written import written

router = APIRouter(prefix="/checkpoint-intervals", tags=["rules"])


class ClassWish(BaseModel):
    """Jobs of a class; null = any. ``since``: from when on."""

    model_config = ConfigDict(extra="forbid")

    cluster: str | None = None
    account: str | None = Field(None, max_length=200)
    job_name: str | None = Field(None, max_length=200)
    since: str
    actor: str = Field("api", max_length=200)

    def jobs(self) -> CheckpointClass:
        return CheckpointClass(
            effective_from=parse_time(self.since), cluster=self.cluster,
            account=self.account, job_name=self.job_name,
        )  # fmt: skip


class IntervalWish(ClassWish):
    """Seconds between their checkpoints."""

    interval_s: float


@router.get("")
def intervals(request: Request) -> list[dict[str, Any]]:
    """Everything that is declared."""
    with service_of(request).store.work() as work:
        return interval_rows(work)


@router.post("")
def declare(request: Request, wish: IntervalWish) -> dict[str, float]:
    """Declare how often jobs of a class write a checkpoint; closed days keep theirs."""
    service = service_of(request)
    known_cluster(service.store, wish.cluster)
    interval_s = read_or_refuse("body", lambda: checked_interval_s(wish.interval_s))
    of, at = read_or_refuse("body", wish.jobs), service.clock()
    written(
        request,
        lambda work: declare_interval(work, of, interval_s, at=at, actor=wish.actor),
        source="checkpoints",
    )
    return {"interval_s": interval_s}


@router.post("/remove")
def remove(request: Request, wish: ClassWish) -> dict[str, bool]:
    """Take a declaration back."""
    of, at = read_or_refuse("body", wish.jobs), service_of(request).clock()
    written(
        request,
        lambda work: remove_interval(work, of, at=at, actor=wish.actor),
        source="checkpoints",
    )
    return {"removed": True}
