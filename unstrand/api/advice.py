"""The weekly report and what people make of it; marks; a job's card."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Query, Request, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from collector.errors import CollectorError
from collector.marks import Mark, record_mark
from collector.store import Work
from scheduler_advisor.advice.recommendation import State, StateChange
from scheduler_advisor.advice.states import change_state
from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.goals import Goals, parse_goals
from scheduler_advisor.job_card import job_card
from scheduler_advisor.report.saved import newest_report, recommendations_of, rows_behind
from scheduler_advisor.running.report import Place, made
from scheduler_advisor.running.report import ReportWish as Task
from scheduler_advisor.running.run import Run
from scheduler_advisor.running.runs import runs_of
from scheduler_advisor.window import Window
from unstrand.api.query import ClusterQuery, WindowQuery, asked_window
from unstrand.api.status import service_of
from unstrand.errors import RequestRefusedError

if TYPE_CHECKING:
    from scheduler_advisor.crew import Crew

router = APIRouter(tags=["advice"])
making = APIRouter(tags=["advice"])
T = TypeVar("T")
Language = Literal["en", "ko"]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ReportWish(_Body):
    """A report to make now."""

    since: str | None = None
    until: str | None = None
    tz: str = "UTC"
    cluster: str | None = None
    language: Language = Field("en", description="Language of the texts: en or ko.")
    goals: str | None = Field(None, description="The text of a goals.toml.", max_length=100_000)
    forms: list[Literal["html", "json", "md", "pdf"]] = Field(default_factory=list)
    replay: bool = Field(
        False, description="Also try changes of scheduling on the window's own jobs: minutes."
    )
    thorough: bool = Field(
        False, description="With replay: fair-share, topology, sharing and the like too."
    )


class StateWish(_Body):
    """A new state of a recommendation."""

    state: State
    actor: str = Field(max_length=200)
    reason: str | None = Field(None, max_length=2000)
    until: AwareDatetime | None = None


class MarkWish(_Body):
    """A mark; without ``ts`` it is now."""

    kind: str
    ts: AwareDatetime | None = None
    cluster: str | None = None
    job_id: str | None = None
    run_id: str | None = None
    node: str | None = None
    text: str | None = None


class NewestQuery(BaseModel):
    """In which language."""

    model_config = ConfigDict(extra="forbid")

    language: Language = Field("en", description="Language of the texts: en or ko.")


class RowsQuery(BaseModel):
    """Which amount to follow."""

    model_config = ConfigDict(extra="forbid")

    amount: Literal["saving", "current"] = Field(
        "saving", description="What the change would save, or what the waste costs today."
    )


@router.get("/advice")
def newest(request: Request, query: Annotated[NewestQuery, Query()]) -> dict[str, Any]:
    """The newest report, its recommendations in the states of now."""
    service = service_of(request)
    with service.store.work() as work:
        row = newest_report(work)
        if row is None:
            raise RequestRefusedError(
                "no report has been made yet", where="/advice",
                remedy="POST /api/v1/advice or `unstrand advise` makes one", status=404,
            )  # fmt: skip
        body: dict[str, Any] = json.loads(row["body"])[query.language]
        body["recommendations"] = recommendations_of(
            work, row["report_id"], service.clock(), query.language
        )
    return body


@making.post("/advice", responses={202: {"description": "Begun; follow it under /runs/{run_id}"}})
def make(request: Request, response: Response, wish: ReportWish) -> dict[str, Any]:
    """Make a report now and keep it; ``files`` holds the forms asked for, base64.

    From facts alone it is returned (200). With ``replay`` it takes minutes: the answer is 202 with
    a ``run_id``, and /runs/{run_id} tells how far it is, holds the report once it is done, and
    takes DELETE to stop it.
    """
    service = service_of(request)
    asked = WindowQuery(since=wish.since, until=wish.until, tz=wish.tz, cluster=wish.cluster)
    found = asked_window(service.store, asked)
    window = Window(found.since, found.until, found.time_zone)

    def begun() -> dict[str, Any]:
        goals = Goals() if wish.goals is None else parse_goals(wish.goals, "goals")
        task = Task(
            window=window, goals=goals, cluster=wish.cluster, language=wish.language,
            forms=tuple(wish.forms), replay=wish.replay, thorough=wish.thorough,
        )  # fmt: skip
        place = Place(
            service.store, service.clock, account=lambda _: service.keeper.everything(),
            keep=lambda write: _written(request, write),
        )  # fmt: skip
        runs = runs_of(service.store, service.clock)

        def doing(run: Run, crew: Crew) -> dict[str, Any]:
            return made(run, crew, task, place)

        if not wish.replay:
            return runs.here("advice", wish.cluster, window, doing)
        response.status_code = 202
        return runs.begin("advice", wish.cluster, window, doing).as_json()

    return _or_refuse("body", begun)


@router.get("/advice/rows/{recommendation_id}")
def rows(
    request: Request, recommendation_id: str, query: Annotated[RowsQuery, Query()]
) -> dict[str, Any]:
    """The rows that a recommendation's amount adds up from, per run or node and day."""
    with service_of(request).store.work() as work:
        known = work.value(
            "SELECT count(*) FROM recommendation WHERE recommendation_id = ?", [recommendation_id]
        )
        if not known:
            raise RequestRefusedError(
                f"no report has a recommendation {recommendation_id}",
                where="path parameter recommendation_id",
                remedy="GET /api/v1/advice names those of the newest", status=404,
            )  # fmt: skip
        return {"rows": rows_behind(work, recommendation_id, query.amount)}


@router.get("/advice/outcomes")
def outcomes(request: Request) -> dict[str, Any]:
    """What changes really brought: advice applied, operators' own, purchases; and how far each
    kind can be trusted here."""
    from scheduler_advisor.followup.record import confidence
    from scheduler_advisor.followup.record import outcomes as judged

    with service_of(request).store.work() as work:
        trust = [
            {"kind": each.kind, "judged": each.judged, "held": each.held,
             "ratio": round(each.ratio, 3)}
            for each in confidence(work)
        ]  # fmt: skip
        return {"rows": judged(work), "confidence": trust}


@router.get("/advice/nudges")
def nudges(request: Request) -> dict[str, Any]:
    """Personal notes as they were written, dry runs too, and whether they have arrived."""
    from scheduler_advisor.delivery.nudges import nudges_written

    with service_of(request).store.work() as work:
        return {"rows": nudges_written(work)}


@router.post("/advice/state/{recommendation_id}")
def state(request: Request, recommendation_id: str, wish: StateWish) -> dict[str, str]:
    """Accept, snooze, dismiss, mark applied, or make new again."""
    change = StateChange(
        ts=service_of(request).clock(), state=wish.state, actor=wish.actor, reason=wish.reason,
        until=wish.until,
    )  # fmt: skip

    def write(work: Work) -> int:
        change_state(work, recommendation_id, change)
        return 1

    _or_refuse("body", lambda: _written(request, write))
    return {"id": recommendation_id, "state": wish.state.value}


@router.post("/marks")
def marks(request: Request, wish: MarkWish) -> dict[str, Any]:
    """Record a checkpoint, a restore, a change of policy, or a note."""
    at: datetime = wish.ts or service_of(request).clock()
    mark = Mark(**{**wish.model_dump(), "ts": at})

    def write(work: Work) -> int:
        record_mark(work, mark)
        return 1

    _or_refuse("body", lambda: _written(request, write))
    return {"kind": mark.kind, "ts": at}


@router.get("/job/{job_id}")
def job(request: Request, job_id: str, query: Annotated[ClusterQuery, Query()]) -> dict[str, Any]:
    """What a job held, used, waited for and cost."""
    service = service_of(request)
    card = _or_refuse(
        "path parameter job_id",
        lambda: job_card(
            service.store,
            job_id,
            service.clock(),
            query.cluster,
            account=lambda *_: service.keeper.recent(),
        ),
    )
    return {**card.body, "line": card.line}


def _written(request: Request, write: Callable[[Work], int]) -> int:
    """Written by the writer thread, in its order, before the answer goes out."""
    return service_of(request).writer.submit(write, source="advice").result(timeout=60)


def _or_refuse(where: str, what: Callable[[], T]) -> T:
    try:
        return what()
    except (AdvisorError, CollectorError) as error:
        raise RequestRefusedError(
            str(error), where=where, remedy="see /api/v1/docs for what it takes"
        ) from error
