"""What somebody outside says that a month costs: invoices, and totals of the asset register."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from analytics.audit import note
from analytics.currencies import is_currency
from analytics.errors import InvoiceError
from analytics.money import text as money_text
from analytics.months import Month
from analytics.prices import KINDS as PRICE_KINDS
from analytics.sheet import decimal_cell, read_sheet
from analytics.window import parse_time
from collector.store import Work

KINDS = ("invoice", "asset_register")
_MOST = Decimal(1_000_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceLine:
    """``gpu_model`` None = no GPU time. ``since``/``until``: what it bills for, None = the month.

    ``price_kind``: list, contracted, amortized or internal, where the sender says so.
    """

    description: str
    amount: Decimal
    gpu_model: str | None = None
    gpu_hours: Decimal | None = None
    price_kind: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        spans = (self.since, self.until)
        checks = (
            (not -_MOST < self.amount < _MOST, f"amount {self.amount}: too large"),
            (self.amount != round(self.amount, 6), f"amount {self.amount}: at most 6 decimals"),
            (self.gpu_hours is not None and self.gpu_hours < 0, "gpu_hours must not be negative"),
            (
                self.gpu_hours is not None and self.gpu_model is None,
                "gpu_hours need a gpu_model",
            ),
            (
                self.price_kind not in (None, *PRICE_KINDS),
                f"price_kind {self.price_kind!r}: use {', '.join(PRICE_KINDS)}",
            ),
            (spans.count(None) == 1, "give both since and until, or neither"),
            (None not in spans and spans[0] >= spans[1], "until must lie after since"),  # type: ignore[operator]
        )
        for wrong, told in checks:
            if wrong:
                raise InvoiceError(f"invoice line {self.description!r}: {told}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoice:
    """A total of a month with its lines, if they are known; ``cluster`` None = all of them."""

    month: Month
    source: str
    amount: Decimal
    currency: str
    kind: str = "invoice"
    cluster: str | None = None
    note: str | None = None
    lines: Sequence[InvoiceLine] = field(default_factory=tuple)
    invoice_id: str = ""

    def __post_init__(self) -> None:
        checks = (
            (self.kind not in KINDS, f"kind {self.kind!r}: use one of {', '.join(KINDS)}"),
            (not self.source.strip(), "source is empty: name the sender and the number"),
            (
                not self.amount.is_finite() or not -_MOST < self.amount < _MOST,
                f"amount {self.amount}: too large, or no number",
            ),
            (not is_currency(self.currency), f"currency {self.currency!r}: use an ISO 4217 code"),
        )
        for wrong, told in checks:
            if wrong:
                raise InvoiceError(f"invoice: {told}")

    def to_dict(self) -> dict[str, Any]:
        return {
            "invoice_id": self.invoice_id, "month": str(self.month), "kind": self.kind,
            "source": self.source, "amount": money_text(self.amount), "currency": self.currency,
            "cluster": self.cluster, "lines": len(self.lines), "note": self.note,
        }  # fmt: skip


def read_lines(text: str, name: str) -> list[InvoiceLine]:
    """Lines from CSV: description, amount and optionally gpu_model, gpu_hours, price_kind, since,
    until. InvoiceError with file, line and remedy."""

    def read(row: dict[str, str]) -> InvoiceLine:
        hours = row.get("gpu_hours")
        return InvoiceLine(
            description=row["description"] or row.get("gpu_model") or "line",
            amount=decimal_cell(row["amount"], "amount", InvoiceError),
            gpu_model=row.get("gpu_model") or None,
            gpu_hours=decimal_cell(hours, "gpu_hours", InvoiceError) if hours else None,
            price_kind=row.get("price_kind") or None,
            since=parse_time(row["since"]) if row.get("since") else None,
            until=parse_time(row["until"]) if row.get("until") else None,
        )

    return read_sheet(text, name, {"description", "amount"}, InvoiceError, read)


def put_invoice(work: Work, invoice: Invoice, *, at: datetime, actor: str) -> Invoice:
    """Enter it; returns it with its id.

    Raises InvoiceError for a source that has one of that month and kind already: retire that first.
    """
    same = [i for i in invoices(work, invoice.month) if _same(i, invoice)]
    if same:
        raise InvoiceError(
            f"{invoice.source} has {same[0].invoice_id} for {invoice.month} already: retire it "
            "first (invoice retire)"
        )
    number = work.value("SELECT count(*) FROM invoice") + 1
    row: dict[str, Any] = {
        "invoice_id": f"I-{number:04d}", "month": invoice.month.first, "cluster": invoice.cluster,
        "kind": invoice.kind, "source": invoice.source.strip(),
        "amount": invoice.amount.quantize(Decimal("0.000001")), "currency": invoice.currency,
        "note": invoice.note, "entered_by": actor, "entered_at": at,
    }  # fmt: skip
    work.append("invoice", {name: [value] for name, value in row.items() if value is not None})
    names = ("description", "amount", "gpu_model", "gpu_hours", "price_kind", "since", "until")
    if invoice.lines:
        columns: dict[str, list[Any]] = {
            n: [getattr(line, n) for line in invoice.lines] for n in names
        }
        count = len(invoice.lines)
        columns |= {"invoice_id": [row["invoice_id"]] * count, "line": list(range(1, count + 1))}
        work.append("invoice_line", columns)
    told = f"{invoice.kind} {money_text(row['amount'])} {invoice.currency} {invoice.month}"
    note(work, at, actor, "invoice.add", row["invoice_id"], reason=row["source"], after=told)
    return next(i for i in invoices(work, invoice.month) if i.invoice_id == row["invoice_id"])


def _same(one: Invoice, other: Invoice) -> bool:
    return (one.source, one.kind, one.cluster) == (other.source.strip(), other.kind, other.cluster)


def retire_invoice(work: Work, invoice_id: str, *, at: datetime, actor: str, reason: str) -> None:
    """Take it out of the reconciliation; it stays in the store. InvoiceError for an unknown one."""
    if not reason.strip():
        raise InvoiceError(f"{invoice_id}: say why it is retired")
    if not any(i.invoice_id == invoice_id for i in invoices(work)):
        raise InvoiceError(f"no invoice {invoice_id!r} in force: see invoice list")
    work.execute(
        "UPDATE invoice SET retired_at = ?, retired_by = ? WHERE invoice_id = ?",
        [at, actor, invoice_id],
    )
    note(work, at, actor, "invoice.retire", invoice_id, reason=reason.strip())


def invoices(work: Work, month: Month | None = None) -> list[Invoice]:
    """Those in force, of one month or of all, with their lines."""
    rows = work.rows(
        "SELECT invoice_id, month, source, amount, currency, kind, cluster, note FROM invoice "
        "WHERE retired_at IS NULL AND ($1 IS NULL OR month = $1) ORDER BY month, invoice_id",
        [None if month is None else month.first],
    )
    lines: dict[str, list[InvoiceLine]] = {}
    for row in work.rows(
        "SELECT invoice_id, description, amount, gpu_model, gpu_hours, price_kind, since, until "
        "FROM invoice_line ORDER BY invoice_id, line"
    ):
        lines.setdefault(row.pop("invoice_id"), []).append(InvoiceLine(**row))
    return [
        Invoice(**{**row, "month": Month.of(row["month"])}, lines=lines.get(row["invoice_id"], ()))
        for row in rows
    ]
