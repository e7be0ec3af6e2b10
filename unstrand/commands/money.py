"""`unstrand report reconciliation|recovery|commitments|energy`: money and energy beside the
ledger."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

import typer

from analytics.months import Month
from analytics.window import Window
from collector.store import Store
from unstrand.commands.options import (
    Cluster,
    Currency,
    Db,
    How,
    Json,
    MonthName,
    Out,
    Server,
    TimeZone,
    chosen,
    listed,
)
from unstrand.commands.question import Asked, fetch
from unstrand.commands.windowed import windowed
from unstrand.output import Format, print_document

Document = Mapping[str, Any]


def reconciliation(
    month: MonthName,
    currency: Currency = None,
    time_zone: TimeZone = "UTC",
    cluster: Cluster = None,
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """How a month's invoices differ from its ledger, explained line by line.

    Example: `unstrand report reconciliation --month 2026-10`
    """
    name = Month.parse(month)
    whole = name.window(time_zone)
    asked = Asked(
        db, server, whole.since, whole.until, time_zone, cluster, chosen(how, as_json), out
    )

    def answer(store: Store, window: Window) -> Document:
        from analytics.reports.reconciliation import reconciliation_report

        return reconciliation_report(
            store, name, time_zone=time_zone, cluster=cluster, currency=currency
        ).to_dict()

    document = fetch(asked, "report/reconciliation", answer, currency=currency)
    total, unit = document["total"], document["currency"]
    sums = [
        f"{label:<11} {Decimal(total[key]):>16,.2f} {unit}"
        for label, key in (("invoices", "outside_cost"), ("ledger", "ledger_cost"),
                           ("difference", "cost"))
    ]  # fmt: skip
    _print(asked, document, sums)


@windowed
def recovery(asked: Asked, currency: Currency = None) -> None:
    """What teams were charged against contracted or amortized cost, unused commitments, overhead.

    Example: `unstrand report recovery --since 2026-10-01 --until 2026-11-01`
    """

    def answer(store: Store, window: Window) -> Document:
        from analytics.reports.recovery import recovery_report

        return recovery_report(store, window, cluster=asked.cluster, currency=currency).to_dict()

    _print(asked, fetch(asked, "report/recovery", answer, currency=currency), [])


@windowed
def commitments(asked: Asked, currency: Currency = None) -> None:
    """What reservations and committed use cost, covered and unused.

    Example: `unstrand report commitments --since 2026-10-01 --until 2026-11-01`
    """

    def answer(store: Store, window: Window) -> Document:
        from analytics.reports.commitments import commitment_report

        return commitment_report(store, window, cluster=asked.cluster, currency=currency).to_dict()

    _print(asked, fetch(asked, "report/commitments", answer, currency=currency), [])


@windowed
def energy(
    asked: Asked,
    by: Annotated[
        str,
        typer.Option(
            "--by", metavar="KEYS", help="team, project, cost_center, user, account, node, cluster."
        ),
    ] = "team",
) -> None:
    """Energy of the boards and its carbon, where energy is measured; beside the ledger.

    Example: `unstrand report energy --by team --since 2026-10-01 --until 2026-11-01`
    """
    keys = listed(by)

    def answer(store: Store, window: Window) -> Document:
        from analytics.reports.energy import energy_report

        return energy_report(store, window, keys, cluster=asked.cluster).to_dict()

    document = fetch(asked, "report/energy", answer, by=",".join(keys))
    measured = document["total"]["measured_ratio"]
    told = "not known" if measured is None else f"{measured:.1%}"
    _print(asked, document, [f"measured  {told} of installed GPU-time"])


def _print(asked: Asked, document: Document, sums: list[str]) -> None:
    window = document["window"]
    notes = [
        f"window    {window['since']} to {window['until']}, {window['time_zone']}",
        *([f"currency  {document['currency']}"] if document["currency"] else []),
        *sums,
        *(f"remark    {remark}" for remark in document["remarks"]),
    ]
    print_document(document, asked.how, out=asked.out, notes=notes)


@windowed
def spot(asked: Asked, currency: Currency = None) -> None:
    """What preempted spot runs cost: useful, lost, and what it would have cost on demand.

    Example: `unstrand report spot --since 2026-10-01 --until 2026-11-01`
    """

    def answer(store: Store, window: Window) -> Document:
        from analytics.reports.spot import spot_report

        return spot_report(store, window, cluster=asked.cluster, currency=currency).to_dict()

    _print(asked, fetch(asked, "report/spot", answer, currency=currency), [])


def register(report_app: typer.Typer) -> None:
    """Put the commands under `report`."""
    report_app.command("reconciliation")(reconciliation)
    report_app.command("recovery")(recovery)
    report_app.command("commitments")(commitments)
    report_app.command("energy")(energy)
    report_app.command("spot")(spot)
