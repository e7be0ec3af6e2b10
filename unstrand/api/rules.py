"""The dated settings of the ledger and who pays for what."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from analytics.ledger.closing import Closing, close_in, day_window
from analytics.ledger.settings import put_setting, setting_rows
from analytics.who_pays import put_rule, who_pays_rows
from analytics.window import parse_time
from collector.store import Work
from unstrand.api.query import known_cluster, read_or_refuse
from unstrand.api.status import service_of
from unstrand.api.written import written
from unstrand.closing import closing_day, ratio

router = APIRouter(tags=["rules"])


class SettingWish(BaseModel):
    """A setting from ``since`` on; null cluster = every cluster without one of its own."""

    model_config = ConfigDict(extra="forbid")

    key: str
    value: str = Field(max_length=200)
    since: str
    cluster: str | None = None
    actor: str = Field("api", max_length=200)


class RuleWish(BaseModel):
    """Who pays for a class (or for what is `unallocated`) from ``since`` on."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(alias="class")
    payer: str
    since: str
    actor: str = Field("api", max_length=200)


@router.get("/settings")
def settings(request: Request) -> list[dict[str, Any]]:
    """What was set, and the whole who-pays table as it holds now."""
    service = service_of(request)
    with service.store.work() as work:
        return [*setting_rows(work), *who_pays_rows(work, service.clock())]


@router.post("/settings")
def set_setting(request: Request, wish: SettingWish) -> dict[str, str]:
    """Change a setting; closed days keep theirs."""
    since, now = read_or_refuse("body", lambda: parse_time(wish.since)), service_of(request).clock()

    def write(work: Work) -> None:
        put_setting(
            work, wish.key, wish.value, since=since, cluster=wish.cluster, actor=wish.actor, now=now
        )

    written(request, write, source="settings")
    return {"key": wish.key, "value": wish.value}


@router.post("/who-pays")
def set_payer(request: Request, wish: RuleWish) -> dict[str, str]:
    """Change who pays; closed days keep their rule."""
    since, now = read_or_refuse("body", lambda: parse_time(wish.since)), service_of(request).clock()

    def write(work: Work) -> None:
        put_rule(work, wish.name, wish.payer, since=since, actor=wish.actor, now=now)

    written(request, write, source="rules")
    return {"class": wish.name, "payer": wish.payer}


class CloseWish(BaseModel):
    """A UTC day to close."""

    model_config = ConfigDict(extra="forbid")

    day: str
    cluster: str
    grace_days: int = Field(3, ge=0, le=3650)
    coverage: str = Field("0.95", max_length=40)
    actor: str = Field("api", max_length=200)


@router.post("/close")
def close(request: Request, wish: CloseWish) -> dict[str, str]:
    """Close a day: its rows, prices and settings stay; late facts become corrections."""
    service = service_of(request)
    day = read_or_refuse("body", lambda: closing_day(wish.day))
    least = read_or_refuse("body", lambda: ratio(wish.coverage))
    known_cluster(service.store, wish.cluster)
    service.keeper.window(day_window(day), wish.cluster)
    closing = Closing(
        cluster=wish.cluster, day=day, now=service.clock(), actor=wish.actor,
        grace=timedelta(days=wish.grace_days), least_coverage=least,
    )  # fmt: skip
    return written(request, lambda work: close_in(work, closing), source="close").to_dict()
