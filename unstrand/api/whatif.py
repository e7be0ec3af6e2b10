"""What another policy would do: started, followed, cancelled, and kept as a proposal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from collector.store import Work
from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.window import Window
from unstrand.api.query import ClusterQuery, WindowQuery, asked_window
from unstrand.api.status import service_of
from unstrand.errors import RequestRefusedError

if TYPE_CHECKING:
    from scheduler_advisor.whatif.runs import Run

router = APIRouter(tags=["what-if"])


class WhatIfWish(BaseModel):
    """A candidate to replay beside today's policy."""

    model_config = ConfigDict(extra="forbid")

    cluster: str
    since: str | None = None
    until: str | None = None
    tz: str = "UTC"
    base: str = Field("today", description="today, a preset's name, or a policy as TOML.")
    values: dict[str, str] = Field(
        default_factory=dict, description="Keys of the policy, such as backfill = easy."
    )
    nodes: int = Field(0, ge=-10_000, le=10_000, description="That many nodes more, or fewer.")
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
    from scheduler_advisor.whatif.runs import runs  # loads the compiler
    from scheduler_advisor.whatif.wish import Wish

    store = service_of(request).store
    query = WindowQuery(since=wish.since, until=wish.until, tz=wish.tz, cluster=wish.cluster)
    found = asked_window(store, query)
    window = Window(found.since, found.until, found.time_zone)
    asked = Wish(wish.base, tuple(sorted(wish.values.items())), wish.nodes, wish.load,
                 wish.estimate, wish.alter)  # fmt: skip
    try:
        return runs().start(store, window, wish.cluster, asked).as_json()
    except AdvisorError as error:
        raise RequestRefusedError(str(error), where="body", remedy="see /api/v1/docs") from error


@router.get("/whatif/{run_id}")
def follow(run_id: str) -> dict[str, Any]:
    """How far a what-if is, and its result once it is done."""
    return _run(run_id).as_json()


@router.delete("/whatif/{run_id}")
def cancel(run_id: str) -> dict[str, Any]:
    """Stop a what-if; nothing of it is kept."""
    run = _run(run_id)
    run.stop.set()
    return run.as_json()


@router.post("/whatif/{run_id}/proposal")
def keep(request: Request, run_id: str, wish: ProposalWish) -> dict[str, Any]:
    """Save a finished what-if as a proposal."""
    from scheduler_advisor.whatif.proposals import save_proposal

    run, service = _run(run_id), service_of(request)
    if run.result is None:
        raise RequestRefusedError(
            "the what-if is not done", where=f"/whatif/{run_id}", remedy="wait for it to be done",
            status=409,
        )  # fmt: skip
    result, window, made = run.result, run.window, []

    def write(work: Work) -> int:
        made.append(
            save_proposal(work, cluster=run.cluster, name=wish.name, actor=wish.actor,
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


def _run(run_id: str) -> Run:
    from scheduler_advisor.whatif.runs import runs

    run = runs().get(run_id)
    if run is None:
        raise RequestRefusedError(
            f"no what-if {run_id}", where="path parameter run_id",
            remedy="POST /api/v1/whatif starts one; the last 64 are kept", status=404,
        )  # fmt: skip
    return run
