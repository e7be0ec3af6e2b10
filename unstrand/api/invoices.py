"""Invoices and asset-register totals of a month."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from analytics.invoices import invoices, retire_invoice
from analytics.months import Month
from collector.store import Work
from unstrand.api.query import known_cluster, read_or_refuse
from unstrand.api.status import service_of
from unstrand.api.written import written
from unstrand.entered import entered_invoice, wanted_invoice

router = APIRouter(tags=["bills"])


class InvoiceWish(BaseModel):
    """A total of a month, or the text of a CSV with its lines, or both."""

    model_config = ConfigDict(extra="forbid")

    month: str = Field(examples=["2026-10"])
    source: str = Field(max_length=200)
    amount: str | None = Field(None, max_length=40)
    currency: str = "USD"
    kind: str = Field("invoice", description="invoice or asset_register.")
    cluster: str | None = None
    note: str | None = Field(None, max_length=2000)
    lines: str | None = Field(None, max_length=10_000_000)
    actor: str = Field("api", max_length=200)


class RetireWish(BaseModel):
    """Why an invoice no longer counts."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(max_length=2000)
    actor: str = Field("api", max_length=200)


class InvoiceQuery(BaseModel):
    """Which ones."""

    model_config = ConfigDict(extra="forbid")

    month: str | None = Field(None, description="2026-10; all of them without it.")


@router.get("/invoices")
def list_invoices(
    request: Request, query: Annotated[InvoiceQuery, Query()]
) -> list[dict[str, Any]]:
    """Invoices in force, by month and id."""
    text = query.month
    month = (
        None if text is None else read_or_refuse("query parameter month", lambda: Month.parse(text))
    )
    with service_of(request).store.work() as work:
        return [invoice.to_dict() for invoice in invoices(work, month)]


@router.post("/invoices")
def add_invoice(request: Request, wish: InvoiceWish) -> dict[str, Any]:
    """Enter an invoice; one of the same source, month and kind must be retired first."""
    service, body = service_of(request), wish.model_dump()
    known_cluster(service.store, wish.cluster)
    read_or_refuse("body", lambda: wanted_invoice(body))
    at = service.clock()

    def write(work: Work) -> dict[str, Any]:
        return entered_invoice(work, body, at=at)

    return written(request, write, source="invoices")


@router.post("/invoices/{invoice_id}/retire")
def retire(request: Request, invoice_id: str, wish: RetireWish) -> dict[str, str]:
    """Take an invoice out of the reconciliation; the log keeps it."""
    at = service_of(request).clock()

    def write(work: Work) -> None:
        retire_invoice(work, invoice_id, at=at, actor=wish.actor, reason=wish.reason)

    written(request, write, source="invoices")
    return {"invoice_id": invoice_id, "state": "retired"}
