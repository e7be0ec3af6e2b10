"""Long work: what runs, how far it is, its result, and an end to it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from scheduler_advisor.running.journal import past_runs
from scheduler_advisor.running.run import Run, RunState
from scheduler_advisor.running.runs import runs_of
from unstrand.api.status import service_of
from unstrand.errors import RequestRefusedError

router = APIRouter(tags=["long work"])


@router.get("/runs")
def listed(request: Request) -> dict[str, Any]:
    """The last 64 pieces of long work, the newest first; ``lost``: the service ended meanwhile."""
    service = service_of(request)
    with service.store.work() as work:
        rows = past_runs(work)
    working = {run.run_id: run for run in runs_of(service.store, service.clock).running()}
    for row in rows:
        run = working.get(row["run_id"])
        row["share"] = None if run is None else round(run.share, 3)
        row["stage"] = None if run is None else run.stage
    return {"rows": rows}


@router.get("/runs/{run_id}")
def follow(request: Request, run_id: str) -> dict[str, Any]:
    """How far it is, and its result once it is done."""
    return run_named(request, run_id).as_json()


@router.delete("/runs/{run_id}")
def cancel(request: Request, run_id: str) -> dict[str, Any]:
    """Stop it; nothing of it is kept."""
    run = run_named(request, run_id)
    run.stop.set()
    return run.as_json()


def run_named(request: Request, run_id: str, kind: str | None = None) -> Run:
    """The run of that id (and kind); a refusal says whether there never was one, or what became of
    it."""
    service = service_of(request)
    run = runs_of(service.store, service.clock).get(run_id)
    if run is not None and kind in (None, run.kind):
        return run
    with service.store.work() as work:
        known = [row for row in past_runs(work, 10_000) if row["run_id"] == run_id]
    if known and known[0]["state"] == RunState.LOST:
        raise RequestRefusedError(
            f"the service ended while {run_id} worked; nothing of it was kept",
            where="path parameter run_id", remedy="start it again", status=410,
        )  # fmt: skip
    if known:
        raise RequestRefusedError(
            f"{run_id} ended as {known[0]['state']} and its result is not held any more",
            where="path parameter run_id",
            remedy="reports are kept: GET /api/v1/advice; a what-if is started again", status=410,
        )  # fmt: skip
    raise RequestRefusedError(
        f"there is no {run_id}", where="path parameter run_id",
        remedy="GET /api/v1/runs lists what there is", status=404,
    )  # fmt: skip
