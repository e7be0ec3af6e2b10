"""`unstrand invoice`: what somebody outside says that a month costs."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated, Any

import typer

from analytics.errors import InvoiceError
from analytics.invoices import invoices, retire_invoice
from analytics.months import Month
from collector.store import Work
from unstrand.clock import utc_now
from unstrand.commands.change import change
from unstrand.commands.files import read_text
from unstrand.commands.options import (
    By,
    Cluster,
    Db,
    How,
    Json,
    MonthName,
    Out,
    Server,
    chosen,
)
from unstrand.commands.source import ask, opened, server_for
from unstrand.entered import entered_invoice
from unstrand.output import Format, print_document

invoice_app = typer.Typer(
    no_args_is_help=True, help="Invoices and asset-register totals, to reconcile a month with."
)


@invoice_app.command("add")
def add(
    month: MonthName,
    source: Annotated[str, typer.Option("--source", help="Sender and number.")],
    amount: Annotated[
        str | None, typer.Option("--amount", help="Its total. Default: the sum of its lines.")
    ] = None,
    currency: Annotated[str, typer.Option("--currency", metavar="CODE")] = "USD",
    kind: Annotated[str, typer.Option("--kind", help="invoice or asset_register.")] = "invoice",
    lines: Annotated[
        Path | None,
        typer.Option(
            "--lines",
            metavar="FILE",
            help="CSV: description, amount, and where known gpu_model, gpu_hours, price_kind, "
            "since, until.",
        ),
    ] = None,
    note: Annotated[str | None, typer.Option("--note")] = None,
    by: By = None,
    cluster: Cluster = None,
    db: Db = None,
    server: Server = None,
) -> None:
    """Enter an invoice; `report reconciliation` explains how it differs from the ledger.

    Example: `unstrand invoice add --month 2026-10 --source "Cloud 17" --lines invoice.csv`
    """
    text = None if lines is None else read_text(lines, InvoiceError)
    body: dict[str, Any] = {
        "month": month, "source": source, "amount": amount, "currency": currency, "kind": kind,
        "cluster": cluster, "note": note, "lines": text, "actor": by or getpass.getuser(),
    }  # fmt: skip

    def write(work: Work) -> dict[str, Any]:
        return entered_invoice(work, body, at=utc_now())

    done = change(db, server, "invoices", body, write)
    typer.echo(
        f"{done['invoice_id']}: {done['kind']} {done['amount']} {done['currency']} for "
        f"{done['month']}, {done['lines']} lines"
    )


@invoice_app.command("list")
def list_invoices(
    month: Annotated[str | None, typer.Option("--month", metavar="YYYY-MM")] = None,
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Print those in force.

    Example: `unstrand invoice list --month 2026-10`
    """
    address = server_for(db, server)
    if address is not None:
        rows = ask(address, "invoices", month=month)
    else:
        wanted = None if month is None else Month.parse(month)
        with opened(db) as store, store.work() as work:
            rows = [invoice.to_dict() for invoice in invoices(work, wanted)]
    print_document({"rows": rows}, chosen(how, as_json), out=out)


@invoice_app.command("retire")
def retire(
    invoice_id: Annotated[str, typer.Argument(metavar="ID")],
    reason: Annotated[str, typer.Option("--reason")],
    by: By = None,
    db: Db = None,
    server: Server = None,
) -> None:
    """Take an invoice out of the reconciliation; the log keeps it.

    Example: `unstrand invoice retire I-0001 --reason "entered twice"`
    """
    actor = by or getpass.getuser()

    def write(work: Work) -> dict[str, Any]:
        retire_invoice(work, invoice_id, at=utc_now(), actor=actor, reason=reason)
        return {}

    body = {"reason": reason, "actor": actor}
    change(db, server, f"invoices/{invoice_id}/retire", body, write)
    typer.echo(f"{invoice_id}: retired")
