"""`unstrand checkpoint`: how often jobs write checkpoints, declared by whoever knows."""

from __future__ import annotations

import getpass
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analytics.window import EPOCH
from collector.store import Work
from unstrand.clock import utc_now
from unstrand.commands.change import change
from unstrand.commands.options import By, Cluster, Db, How, Json, Out, Server, chosen, instant
from unstrand.commands.question import iso
from unstrand.commands.source import ask, opened, server_for
from unstrand.output import Format, print_document

if TYPE_CHECKING:
    from analytics.checkpoint_intervals import CheckpointClass

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
    if interval_s <= 0:
        raise typer.BadParameter("seconds between checkpoints must lie above 0")
    asked = _Asked(cluster, account, job_name, since or EPOCH, by or getpass.getuser())

    def write(work: Work) -> None:
        from analytics.checkpoint_intervals import declare_interval

        declare_interval(work, asked.jobs(), interval_s, at=utc_now(), actor=asked.actor)

    body = asked.body() | {"interval_s": interval_s}
    change(db, server, "checkpoint-intervals", body, write)
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
    asked = _Asked(cluster, account, job_name, since or EPOCH, by or getpass.getuser())

    def write(work: Work) -> None:
        from analytics.checkpoint_intervals import remove_interval

        remove_interval(work, asked.jobs(), at=utc_now(), actor=asked.actor)

    change(db, server, "checkpoint-intervals/remove", asked.body(), write)
    typer.echo("removed")


@dataclass(frozen=True, slots=True)
class _Asked:
    """Of which jobs, and by whom."""

    cluster: str | None
    account: str | None
    job_name: str | None
    since: datetime
    actor: str

    def jobs(self) -> CheckpointClass:
        # Here, not above: the ledger loads numba, which asking a service does not need.
        from analytics.checkpoint_intervals import CheckpointClass

        return CheckpointClass(
            effective_from=self.since,
            cluster=self.cluster,
            account=self.account,
            job_name=self.job_name,
        )

    def body(self) -> dict[str, Any]:
        """As requests carry it."""
        return asdict(self) | {"since": iso(self.since)}
