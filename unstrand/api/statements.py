"""Monthly statements, as JSON and as files."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from unstrand.api.query import known_cluster, read_or_refuse
from unstrand.api.status import service_of
from unstrand.statements import StatementWish, made

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
    now = service.clock()
    window = read_or_refuse(WHERE, lambda: wish.asked().window(now))
    service.keeper.window(window, query.cluster)
    return {"statements": read_or_refuse(WHERE, lambda: made(service.store, wish, now))}
