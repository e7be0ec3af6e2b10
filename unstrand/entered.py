"""An invoice as people enter it, by command or request."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from analytics.errors import InvoiceError
from analytics.invoices import Invoice, put_invoice, read_lines
from analytics.months import Month
from analytics.sheet import decimal_cell
from collector.store import Work


def wanted_invoice(body: Mapping[str, Any]) -> Invoice:
    """The invoice that ``body`` describes; InvoiceError or WindowError for none.

    Without an amount it is the sum of its lines; one without both is refused.
    """
    text = body.get("lines")
    lines = [] if text is None else read_lines(text, "lines")
    if body.get("amount") is None and not lines:
        raise InvoiceError("an invoice needs an amount, or lines that add up to it")
    amount = (
        sum((line.amount for line in lines), Decimal(0))
        if body.get("amount") is None
        else decimal_cell(str(body["amount"]), "amount", InvoiceError)
    )
    return Invoice(
        month=Month.parse(body["month"]), source=body["source"], amount=amount,
        currency=body["currency"], kind=body["kind"], cluster=body["cluster"],
        note=body["note"], lines=lines,
    )  # fmt: skip


def entered_invoice(work: Work, body: Mapping[str, Any], *, at: datetime) -> dict[str, Any]:
    """Enter it; returns it as it is listed."""
    return put_invoice(work, wanted_invoice(body), at=at, actor=body["actor"]).to_dict()
