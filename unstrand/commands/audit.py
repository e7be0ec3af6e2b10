"""`unstrand audit`: who changed what decides a bill."""

from __future__ import annotations

from typing import Annotated

import typer

from analytics.audit import audit_rows
from unstrand.commands.options import Db, How, Json, Out, Server, Since, Until, chosen
from unstrand.commands.question import iso
from unstrand.commands.source import ask, opened, server_for
from unstrand.output import Format, print_document


def audit(
    since: Since = None,
    until: Until = None,
    actor: Annotated[str | None, typer.Option("--actor", metavar="NAME")] = None,
    action: Annotated[
        str | None,
        typer.Option(
            "--action",
            metavar="ACTION",
            help="price, org, rate, setting, who_pays, adjustment, invoice, day, ...; or one in "
            "full, adjustment.approve.",
        ),
    ] = None,
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Print every change to prices, owners, settings, rules and adjustments, oldest first.

    Example: `unstrand audit --action price --since 2026-10-01`
    """
    address = server_for(db, server)
    if address is not None:
        rows = ask(address, "audit", since=iso(since), until=iso(until), actor=actor, action=action)
    else:
        with opened(db) as store, store.work() as work:
            rows = audit_rows(work, since=since, until=until, actor=actor, action=action)
    print_document({"rows": rows}, chosen(how, as_json), out=out)
