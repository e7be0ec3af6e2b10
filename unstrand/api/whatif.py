"""What another policy would do: started, followed, cancelled, and kept as a proposal."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from collector.store import Work
from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.running.run import RunState
from scheduler_advisor.running.runs import runs_of
from scheduler_advisor.window import Window
from unstrand.api.query import ClusterQuery, WindowQuery, asked_window
from unstrand.api.runs import run_named
from unstrand.api.status import service_of
from unstrand.errors import RequestRefusedError

router = APIRouter(tags=["what-if"])


class WhatIfWish(BaseModel):
    """A candidate to replay beside today's policy."""

    model_config = ConfigDict(extra="forbid")

    cluster: str
    since: str | None = None
    until: str | None = None
    tz: str = "UTC"
    base: str = Field(
        "today", description="today, a preset's name, or a policy as TOML.", max_length=100_000
    )
    values: dict[str, str] = Field(
        default_factory=dict, description="Keys of the policy, such as backfill = easy."
    )
    nodes: StrictInt = Field(
        0, ge=-10_000, le=10_000, description="That many nodes more, or fewer."
    )
    load: float = Field(1.0, description="Arrivals that many times as fast.")
    estimate: float = Field(0.0, description="Limits that many times the run time; 0: as they are.")
    alter: str = Field("", description="cap_cpu or cap_memory.")


class ProposalWish(BaseModel):
    """A finished run to keep."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=200)
    actor: str = Field("api", max_length=200)


@router.post("/whatif", status_code=202)
def start(request: Request, wish: WhatIfWish) -> dict[str, Any]:
    """Begin a what-if; it runs in processes of its own. Follow it under /whatif/{run_id}."""
    from scheduler_advisor.whatif.try_out import start_whatif  # loads the compiler
    from scheduler_advisor.whatif.wish import Wish

    service = service_of(request)
    store = service.store
    query = WindowQuery(since=wish.since, until=wish.until, tz=wish.tz, cluster=wish.cluster)
    found = asked_window(store, query)
    window = Window(found.since, found.until, found.time_zone)
    asked = Wish(wish.base, tuple(sorted(wish.values.items())), wish.nodes, wish.load,
                 wish.estimate, wish.alter)  # fmt: skip
    try:
        runs = runs_of(store, service.clock)
        return start_whatif(runs, window, wish.cluster, asked).as_json()
    except AdvisorError as error:
        raise RequestRefusedError(str(error), where="body", remedy="see /api/v1/docs") from error


@router.get("/whatif/{run_id}")
def follow(request: Request, run_id: str) -> dict[str, Any]:
    """How far a what-if is, and its result once it is done."""
    return run_named(request, run_id, "whatif").as_json()


@router.delete("/whatif/{run_id}")
def cancel(request: Request, run_id: str) -> dict[str, Any]:
    """Stop a what-if; nothing of it is kept."""
    run = run_named(request, run_id, "whatif")
    run.stop.set()
    return run.as_json()


@router.post("/whatif/{run_id}/proposal")
def keep(request: Request, run_id: str, wish: ProposalWish) -> dict[str, Any]:
    """Save a finished what-if as a proposal."""
    from scheduler_advisor.whatif.proposals import save_proposal

    run, service = run_named(request, run_id, "whatif"), service_of(request)
    if run.state is not RunState.DONE or run.result is None:
        raise RequestRefusedError(
            "the what-if is not done", where=f"/whatif/{run_id}", remedy="wait for it to be done",
            status=409,
        )  # fmt: skip
    assert run.cluster is not None
    cluster, result, window, made = run.cluster, run.result, run.window, []

    def write(work: Work) -> int:
        made.append(
            save_proposal(work, cluster=cluster, name=wish.name, actor=wish.actor,
                          window=window, result=result, ts=service.clock())
        )  # fmt: skip
        return 1

    service.writer.submit(write, source="proposal").result(timeout=60)
    return {"proposal_id": made[0]}


@router.get("/proposals")
def listed(request: Request, query: Annotated[ClusterQuery, Query()]) -> dict[str, Any]:
    """Every saved proposal, the newest first."""
    from scheduler_advisor.whatif.proposals import proposals

    with service_of(request).store.work() as work:
        return {"rows": proposals(work, query.cluster)}
