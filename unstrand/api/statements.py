"""Monthly statements, as JSON and as files."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from analytics.months import Month
from analytics.statements.issue import issue_rows
from unstrand.api.query import known_cluster, read_or_refuse
from unstrand.api.status import service_of
from unstrand.api.written import written
from unstrand.statements import StatementWish, drafts, issued_files, made, put_drafts

router = APIRouter(tags=["bills"])
WHERE = "query parameters month, team, currency, tz, language and forms"


class StatementQuery(BaseModel):
    """A month's statements."""

    model_config = ConfigDict(extra="forbid")

    month: str = Field(description="2026-10")
    team: str | None = Field(None, description="One team; without it all, the platform's last.")
    platform: bool = Field(False, description="Only what no team pays.")
    tz: str = Field("UTC", description="Time zone in which the month begins.")
    cluster: str | None = Field(None, description="One cluster; all of them without it.")
    currency: str | None = Field(None, description="ISO 4217 code, joined by dated rates.")
    language: str = Field("en", description="Language of the files: en or ko.")
    forms: str = Field("", description="html, pdf, csv, json: files to add, in base64.")


@router.get("/statements")
def statements(request: Request, query: Annotated[StatementQuery, Query()]) -> dict[str, Any]:
    """Each team's bill of a month; together they add up to the fleet's cost, to the cent."""
    service = service_of(request)
    known_cluster(service.store, query.cluster)
    wish = StatementWish(
        month=query.month, team=query.team, platform=query.platform, time_zone=query.tz,
        cluster=query.cluster, currency=query.currency, language=query.language,
        forms=tuple(form.strip() for form in query.forms.split(",") if form.strip()),
    )  # fmt: skip
    now = _now(request, wish)
    return {"statements": read_or_refuse(WHERE, lambda: made(service.store, wish, now))}


class IssueWish(BaseModel):
    """Statements to freeze: a team's, the platform's, or all of a month."""

    model_config = ConfigDict(extra="forbid")

    month: str
    team: str | None = None
    platform: bool = False
    tz: str = "UTC"
    cluster: str | None = None
    currency: str | None = None
    actor: str = Field("api", max_length=200)


@router.post("/statements/issue")
def issue(request: Request, body: IssueWish) -> dict[str, Any]:
    """Freeze final statements as rows; what changed since becomes the next version."""
    service = service_of(request)
    known_cluster(service.store, body.cluster)
    wish = StatementWish(
        month=body.month, team=body.team, platform=body.platform, time_zone=body.tz,
        cluster=body.cluster, currency=body.currency,
    )  # fmt: skip
    now = _now(request, wish)
    found = read_or_refuse("body", lambda: drafts(service.store, wish, now))
    done = written(
        request, lambda work: put_drafts(work, found, at=now, actor=body.actor), source="statements"
    )
    return {"issued": done}


class IssuedQuery(BaseModel):
    """What was issued."""

    model_config = ConfigDict(extra="forbid")

    month: str | None = Field(None, description="2026-10; all months without it.")
    team: str | None = Field(None, description="One team; all without it.")


class FormsQuery(BaseModel):
    """Forms of an issue."""

    model_config = ConfigDict(extra="forbid")

    forms: str = Field("json", description="html, pdf, csv, json.")
    language: str = Field("en", description="Language of the page: en or ko.")


@router.get("/statements/issued")
def issued(request: Request, query: Annotated[IssuedQuery, Query()]) -> dict[str, Any]:
    """What was issued, every version, with the versions of prices, owners and rules."""
    text = query.month
    month = None if text is None else read_or_refuse(WHERE, lambda: Month.parse(text))
    with service_of(request).store.work() as work:
        return {"issued": issue_rows(work, month, query.team)}


@router.get("/statements/issued/{issue_id}")
def issued_one(
    request: Request, issue_id: str, query: Annotated[FormsQuery, Query()]
) -> dict[str, Any]:
    """An issue as it went out, byte for byte: files in base64."""
    names = tuple(form.strip() for form in query.forms.split(",") if form.strip())
    store = service_of(request).store
    found = read_or_refuse(WHERE, lambda: issued_files(store, issue_id, names, query.language))
    return {"issue_id": issue_id, "files": found}


def _now(request: Request, wish: StatementWish) -> datetime:
    """The service's clock, once the ledger has the month."""
    service = service_of(request)
    now = service.clock()
    window = read_or_refuse(WHERE, lambda: wish.asked().window(now))
    service.keeper.window(window, wish.cluster)
    return now
