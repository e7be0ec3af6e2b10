"""Adjustments of bills, and the log of who changed what decides them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from analytics.adjustments import Adjustment, adjustments, decide, put_adjustment
from analytics.audit import audit_rows
from analytics.errors import AdjustmentError
from analytics.months import Month
from analytics.sheet import decimal_cell
from analytics.window import parse_time
from collector.store import Work
from unstrand.api.query import read_or_refuse
from unstrand.api.status import service_of
from unstrand.api.written import written

router = APIRouter(tags=["bills"])


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AdjustmentWish(_Body):
    """An amount added to what a team (null: the platform) pays for a month; a credit is below 0."""

    month: str = Field(examples=["2026-10"])
    team: str | None = None
    kind: str = Field("manual", description="credit, dispute or manual.")
    amount: str = Field(examples=["-120.50"], max_length=40)
    currency: str = "USD"
    reason: str = Field(max_length=2000)
    author: str = Field(max_length=200)
    cluster: str | None = None


class Decision(_Body):
    """Approved or rejected, by somebody other than the author."""

    approve: bool
    actor: str = Field(max_length=200)
    reason: str = Field("", max_length=2000)


class AdjustmentQuery(_Body):
    """Which ones."""

    month: str | None = Field(None, description="2026-10; all of them without it.")
    team: str | None = Field(None, description="One team, as the map spells it.")


class AuditQuery(_Body):
    """Which part of the log."""

    since: str | None = Field(None, description="First instant.")
    until: str | None = Field(None, description="First instant after them.")
    actor: str | None = Field(None, description="Who made the change.")
    action: str | None = Field(None, description="price, org, rate, adjustment.approve, ...")


@router.get("/adjustments")
def list_adjustments(
    request: Request, query: Annotated[AdjustmentQuery, Query()]
) -> list[dict[str, Any]]:
    """Adjustments with their state, by month and id."""
    text = query.month
    month = (
        None if text is None else read_or_refuse("query parameter month", lambda: Month.parse(text))
    )
    with service_of(request).store.work() as work:
        return [entry.to_dict() for entry in adjustments(work, month=month, team=query.team)]


@router.post("/adjustments")
def add_adjustment(request: Request, wish: AdjustmentWish) -> dict[str, Any]:
    """Enter an adjustment; it counts once somebody else has approved it."""

    def wanted() -> Adjustment:
        amount = decimal_cell(wish.amount, "amount", AdjustmentError)
        month = Month.parse(wish.month)
        return Adjustment(**{**wish.model_dump(), "month": month, "amount": amount})

    entry, at = read_or_refuse("body", wanted), service_of(request).clock()

    def write(work: Work) -> dict[str, Any]:
        return put_adjustment(work, entry, at=at).to_dict()

    return written(request, write, source="adjustments")


@router.post("/adjustments/{adjustment_id}")
def decide_adjustment(request: Request, adjustment_id: str, decision: Decision) -> dict[str, Any]:
    """Approve or reject a pending adjustment."""
    at = service_of(request).clock()

    def write(work: Work) -> dict[str, Any]:
        return decide(work, adjustment_id, at=at, **decision.model_dump()).to_dict()

    return written(request, write, source="adjustments")


@router.get("/audit")
def audit(request: Request, query: Annotated[AuditQuery, Query()]) -> list[dict[str, Any]]:
    """Every change to prices, owners, settings, rules and adjustments, oldest first."""
    times = {
        name: None if text is None else read_or_refuse(f"query parameter {name}", _time(text))
        for name, text in (("since", query.since), ("until", query.until))
    }
    with service_of(request).store.work() as work:
        return audit_rows(work, **times, actor=query.actor, action=query.action)


def _time(text: str) -> Any:
    return lambda: parse_time(text)
