"""`unstrand checkpoint`: how often jobs write checkpoints, declared by whoever knows."""

from __future__ import annotations

import getpass
from datetime import datetime
from typing import Annotated, Any

import typer

from analytics.window import EPOCH
from collector.store import Work
from unstrand.clock import utc_now
from unstrand.commands.change import change
from unstrand.commands.options import By, Cluster, Db, How, Json, Out, Server, chosen, instant
from unstrand.commands.question import iso
from unstrand.commands.source import ask, opened, server_for
from unstrand.output import Format, print_document

checkpoint_app = typer.Typer(
    no_args_is_help=True, help="How often jobs write checkpoints: what a thrown out run has lost."
)
Account = Annotated[
    str | None, typer.Option("--account", metavar="NAME", help="Of this account only.")
]
JobName = Annotated[
    str | None,
    typer.Option("--job-name", metavar="NAME", help="Of jobs of this name; digits do not count."),
]
From = Annotated[
    datetime | None,
    typer.Option("--since", metavar="TIME", parser=instant, help="From then on. Default: always."),
]


@checkpoint_app.command("list")
def list_intervals(
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Print what is declared.

    Example: `unstrand checkpoint list`
    """
    address = server_for(db, server)
    if address is not None:
        rows = ask(address, "checkpoint-intervals")
    else:
        # Here, not above: the ledger loads numba, which asking a service does not need.
        from analytics.checkpoint_intervals import interval_rows

        with opened(db) as store, store.work() as work:
            rows = interval_rows(work)
    print_document({"rows": rows}, chosen(how, as_json), out=out)


@checkpoint_app.command("declare")
def declare(
    interval_s: Annotated[float, typer.Argument(metavar="SECONDS", help="Between checkpoints.")],
    account: Account = None,
    job_name: JobName = None,
    since: From = None,
    cluster: Cluster = None,
    by: By = None,
    db: Db = None,
    server: Server = None,
) -> None:
    """Declare how often jobs of a class write a checkpoint; closed days keep what they rest on.

    Example: `unstrand checkpoint declare 3600 --account nlp --job-name train`
    """
    _change("checkpoint-intervals", (interval_s, account, job_name, since, cluster), by, db, server)
    typer.echo(f"a checkpoint every {interval_s:g} s")


@checkpoint_app.command("remove")
def remove(
    account: Account = None,
    job_name: JobName = None,
    since: From = None,
    cluster: Cluster = None,
    by: By = None,
    db: Db = None,
    server: Server = None,
) -> None:
    """Take a declaration back, named as list shows it.

    Example: `unstrand checkpoint remove --account nlp --job-name train`
    """
    found = (None, account, job_name, since, cluster)
    _change("checkpoint-intervals/remove", found, by, db, server)
    typer.echo("removed")


def _change(
    path: str,
    what: tuple[float | None, str | None, str | None, datetime | None, str | None],
    by: str | None,
    db: Db,
    server: Server,
) -> None:
    actor = by or getpass.getuser()
    interval_s, account, job_name, since, cluster = what
    names = {"cluster": cluster, "account": account, "job_name": job_name}
    body: dict[str, Any] = {**names, "since": iso(since or EPOCH), "actor": actor}
    if interval_s is not None:
        body["interval_s"] = interval_s

    def write(work: Work) -> None:
        from analytics.checkpoint_intervals import (
            CheckpointInterval,
            declare_interval,
            remove_interval,
        )

        row = CheckpointInterval(
            interval_s=interval_s or 1, effective_from=since or EPOCH, **names
        )  # fmt: skip
        act = remove_interval if interval_s is None else declare_interval
        act(work, row, at=utc_now(), actor=actor)

    if interval_s is not None and interval_s <= 0:
        raise typer.BadParameter("seconds between checkpoints must lie above 0")
    change(db, server, path, body, write)
