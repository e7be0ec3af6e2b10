"""Reports of money and energy beside the ledger: reconciliation, recovery, commitments, energy."""

from __future__ import annotations

from typing import Annotated, Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request
from pydantic import Field

from analytics.months import Month
from analytics.reports.commitments import commitment_report
from analytics.reports.energy import energy_report
from analytics.reports.reconciliation import reconciliation_report
from analytics.reports.recovery import recovery_report
from analytics.reports.spot import spot_report
from analytics.window import Window
from unstrand.api.query import WindowQuery, asked_window, read_or_refuse
from unstrand.api.status import service_of
from unstrand.errors import RequestRefusedError

router = APIRouter(prefix="/report", tags=["reports"])
WHERE = "query parameters since, until, cluster and currency"


class MoneyQuery(WindowQuery):
    """A window and a currency."""

    currency: str | None = Field(None, description="ISO 4217 code, joined by dated rates.")


class EnergyQuery(WindowQuery):
    """A window and its group keys."""

    by: str = Field("team", description="team, project, cost_center, user, account, node, cluster.")


Asked = Annotated[MoneyQuery, Query()]


def _accounted(request: Request, query: WindowQuery) -> Window:
    service = service_of(request)
    window = asked_window(service.store, query)
    service.keeper.window(window, query.cluster)
    return window


@router.get("/reconciliation")
def reconciliation(request: Request, query: Asked) -> dict[str, Any]:
    """How a month's invoices differ from its ledger; the window must be a month of ``tz``."""
    window, store = _accounted(request, query), service_of(request).store
    month = Month.of(window.since.astimezone(ZoneInfo(query.tz)).date())
    if month.window(query.tz) != window:
        raise RequestRefusedError(
            "the window is no calendar month",
            where="query parameters since, until and tz",
            remedy=f"give the first instants of a month and of the next in {query.tz}",
        )
    report = read_or_refuse(
        WHERE,
        lambda: reconciliation_report(
            store, month, time_zone=query.tz, cluster=query.cluster, currency=query.currency
        ),
    )
    return report.to_dict()


@router.get("/recovery")
def recovery(request: Request, query: Asked) -> dict[str, Any]:
    """What teams were charged against contracted or amortized cost."""
    window, store = _accounted(request, query), service_of(request).store
    report = read_or_refuse(
        WHERE,
        lambda: recovery_report(store, window, cluster=query.cluster, currency=query.currency),
    )
    return report.to_dict()


@router.get("/commitments")
def commitments(request: Request, query: Asked) -> dict[str, Any]:
    """What reservations and committed use cost, covered and unused."""
    window, store = _accounted(request, query), service_of(request).store
    report = read_or_refuse(
        WHERE,
        lambda: commitment_report(store, window, cluster=query.cluster, currency=query.currency),
    )
    return report.to_dict()


@router.get("/spot")
def spot(request: Request, query: Asked) -> dict[str, Any]:
    """What preempted spot runs cost: useful, lost, and what it would have cost on demand."""
    window, store = _accounted(request, query), service_of(request).store
    report = read_or_refuse(
        WHERE,
        lambda: spot_report(store, window, cluster=query.cluster, currency=query.currency),
    )
    return report.to_dict()


@router.get("/energy")
def energy(request: Request, query: Annotated[EnergyQuery, Query()]) -> dict[str, Any]:
    """Energy of the boards and its carbon, where energy is measured."""
    window, store = _accounted(request, query), service_of(request).store
    keys = tuple(key.strip() for key in query.by.split(",") if key.strip())
    report = read_or_refuse(
        "query parameter by", lambda: energy_report(store, window, keys, cluster=query.cluster)
    )
    return report.to_dict()
