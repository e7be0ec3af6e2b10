"""`unstrand setting`: the dated settings of the ledger, and who pays for what."""

from __future__ import annotations

import getpass
from datetime import datetime
from typing import Annotated, Any

import typer

from collector.store import Work
from unstrand.clock import utc_now
from unstrand.commands.change import change
from unstrand.commands.options import By, Cluster, Db, How, Json, Out, Server, chosen, instant
from unstrand.commands.question import iso
from unstrand.commands.source import ask, opened, server_for
from unstrand.output import Format, print_document

setting_app = typer.Typer(
    no_args_is_help=True, help="Settings that decide classes and bills, since when."
)
From = Annotated[
    datetime,
    typer.Option("--since", metavar="TIME", parser=instant, help="It holds from then on."),
]


@setting_app.command("list")
def list_settings(
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Print what was set, and the whole who-pays table as it holds now.

    Example: `unstrand setting list`
    """
    address = server_for(db, server)
    if address is not None:
        rows = ask(address, "settings")
    else:
        # Here, not above: the ledger loads numba, which asking a service does not need.
        from analytics.ledger.settings import setting_rows
        from analytics.who_pays import who_pays_rows

        with opened(db) as store, store.work() as work:
            rows = [*setting_rows(work), *who_pays_rows(work, utc_now())]
    print_document({"rows": rows}, chosen(how, as_json), out=out)


@setting_app.command("put")
def put(
    key: Annotated[str, typer.Argument(help="headroom_gpus, purchase_type, demand_quantile, ...")],
    value: Annotated[str, typer.Argument()],
    since: From,
    cluster: Cluster = None,
    by: By = None,
    db: Db = None,
    server: Server = None,
) -> None:
    """Change a setting of the ledger from the first UTC day at or after a time; closed days keep
    theirs.

    Example: `unstrand setting put purchase_type spot --since 2026-11-01 --cluster cloud`
    """
    actor = by or getpass.getuser()

    def write(work: Work) -> dict[str, Any]:
        from analytics.ledger.settings import put_setting

        put_setting(work, key, value, since=since, cluster=cluster, actor=actor, now=utc_now())
        return {}

    body = {"key": key, "value": value, "since": iso(since), "cluster": cluster, "actor": actor}
    change(db, server, "settings", body, write)
    typer.echo(f"{key} = {value} from {iso(since)}")


@setting_app.command("who-pays")
def who_pays(
    name: Annotated[str, typer.Argument(metavar="CLASS", help="A ledger class, or unallocated.")],
    payer: Annotated[
        str,
        typer.Argument(
            help="holder, causer, waiter or platform; for unallocated: platform, use or causers."
        ),
    ],
    since: From,
    by: By = None,
    db: Db = None,
    server: Server = None,
) -> None:
    """Change who pays for a class, or who bears what nobody holds; closed days keep their rule.

    Example: `unstrand setting who-pays unallocated use --since 2026-11-01`
    """
    actor = by or getpass.getuser()

    def write(work: Work) -> dict[str, Any]:
        from analytics.who_pays import put_rule

        put_rule(work, name, payer, since=since, actor=actor, now=utc_now())
        return {}

    body = {"class": name, "payer": payer, "since": iso(since), "actor": actor}
    change(db, server, "who-pays", body, write)
    typer.echo(f"{name}: {payer} from {iso(since)}")
