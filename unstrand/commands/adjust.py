"""`unstrand adjust`: credits, disputes and manual amounts, decided by a second person."""

from __future__ import annotations

import getpass
from decimal import Decimal
from typing import Annotated, Any

import typer

from analytics.adjustments import Adjustment, adjustments, decide, put_adjustment
from analytics.errors import AdjustmentError
from analytics.months import Month
from analytics.sheet import decimal_cell
from collector.store import Work
from unstrand.clock import utc_now
from unstrand.commands.change import change
from unstrand.commands.options import By, Cluster, Db, How, Json, MonthName, Out, Server, chosen
from unstrand.commands.source import ask, opened, server_for
from unstrand.output import Format, print_document

adjust_app = typer.Typer(
    no_args_is_help=True, help="Money added to or taken from a team's bill by people."
)
Id = Annotated[str, typer.Argument(metavar="ID", help="As `adjust list` shows it, A-0001.")]


@adjust_app.command("add")
def add(
    month: MonthName,
    amount: Annotated[
        str, typer.Option("--amount", help="Added to what the team pays; a credit is below 0.")
    ],
    reason: Annotated[str, typer.Option("--reason", help="Why; it is printed on the statement.")],
    kind: Annotated[str, typer.Option("--kind", help="credit, dispute or manual.")] = "manual",
    team: Annotated[
        str | None, typer.Option("--team", metavar="TEAM", help="Without it: the platform.")
    ] = None,
    currency: Annotated[str, typer.Option("--currency", metavar="CODE")] = "USD",
    by: By = None,
    cluster: Cluster = None,
    db: Db = None,
    server: Server = None,
) -> None:
    """Enter an adjustment; it counts once somebody else has approved it.

    Example: `unstrand adjust add --team nlp --month 2026-10 --kind credit --amount=-120.50
    --reason "node n7 was slow"`
    """
    body = {
        "month": month, "team": team, "kind": kind, "amount": amount, "currency": currency,
        "reason": reason, "author": by or getpass.getuser(), "cluster": cluster,
    }  # fmt: skip

    def write(work: Work) -> dict[str, Any]:
        return put_adjustment(work, wanted(body), at=utc_now()).to_dict()

    done = change(db, server, "adjustments", body, write)
    typer.echo(
        f"{done['adjustment_id']}: {done['kind']} {done['amount']} {done['currency']}, "
        f"{done['state']}; it counts once somebody else approves it"
    )


def wanted(body: dict[str, Any]) -> Adjustment:
    """The adjustment that a request describes; AdjustmentError or WindowError for none."""
    amount: Decimal = decimal_cell(str(body["amount"]), "amount", AdjustmentError)
    return Adjustment(**{**body, "month": Month.parse(body["month"]), "amount": amount})


@adjust_app.command("list")
def list_adjustments(
    month: Annotated[str | None, typer.Option("--month", metavar="YYYY-MM")] = None,
    team: Annotated[str | None, typer.Option("--team", metavar="TEAM")] = None,
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Print them with their state, approval and reason.

    Example: `unstrand adjust list --month 2026-10 --format csv`
    """
    address = server_for(db, server)
    if address is not None:
        rows = ask(address, "adjustments", month=month, team=team)
    else:
        chosen_month = None if month is None else Month.parse(month)
        with opened(db) as store, store.work() as work:
            rows = [a.to_dict() for a in adjustments(work, month=chosen_month, team=team)]
    print_document({"rows": rows}, chosen(how, as_json), out=out)


@adjust_app.command("approve")
def approve(
    adjustment_id: Id,
    reason: Annotated[str, typer.Option("--reason")] = "",
    by: By = None,
    db: Db = None,
    server: Server = None,
) -> None:
    """Let a pending adjustment count; whoever wrote it cannot.

    Example: `unstrand adjust approve A-0001 --by bob`
    """
    _decide(adjustment_id, True, reason, by, db, server)


@adjust_app.command("reject")
def reject(
    adjustment_id: Id,
    reason: Annotated[str, typer.Option("--reason", help="Why; whoever wrote it will ask.")],
    by: By = None,
    db: Db = None,
    server: Server = None,
) -> None:
    """Turn a pending adjustment down; it stays in the list with the reason.

    Example: `unstrand adjust reject A-0001 --by bob --reason "the node was fine"`
    """
    _decide(adjustment_id, False, reason, by, db, server)


def _decide(
    adjustment_id: str, yes: bool, reason: str, by: str | None, db: Db, server: Server
) -> None:
    actor = by or getpass.getuser()
    body = {"approve": yes, "actor": actor, "reason": reason}

    def write(work: Work) -> dict[str, Any]:
        done = decide(work, adjustment_id, approve=yes, actor=actor, reason=reason, at=utc_now())
        return done.to_dict()

    done = change(db, server, f"adjustments/{adjustment_id}", body, write)
    typer.echo(f"{done['adjustment_id']}: {done['state']}")
