"""`unstrand import`: facts of other systems into the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from collector.demo import holds_demo
from collector.errors import StoreError
from collector.store import Store
from unstrand.clock import utc_now
from unstrand.commands.options import Db, Json, Since, Until
from unstrand.commands.progress import working
from unstrand.commands.source import opened
from unstrand.output import Format, print_document

if TYPE_CHECKING:
    from collector.slurm.summary import ImportSummary

import_app = typer.Typer(no_args_is_help=True, help="Take in facts of other systems.")


@import_app.command("slurm")
def slurm(
    cluster: Annotated[str, typer.Option("--cluster", metavar="NAME", help="Name it goes under.")],
    live: Annotated[
        bool, typer.Option("--live", help="Ask sacct, scontrol and sacctmgr of this host.")
    ] = False,
    sacct: Annotated[
        Path | None, typer.Option("--sacct", metavar="FILE", help="Output of sacct -P.")
    ] = None,
    nodes: Annotated[
        Path | None, typer.Option("--nodes", metavar="FILE", help="Output of scontrol show node.")
    ] = None,
    events: Annotated[
        Path | None, typer.Option("--events", metavar="FILE", help="sacctmgr show event.")
    ] = None,
    topology: Annotated[
        Path | None, typer.Option("--topology", metavar="FILE", help="topology.conf or .yaml.")
    ] = None,
    partitions: Annotated[
        Path | None, typer.Option("--partitions", metavar="FILE", help="scontrol show partition.")
    ] = None,
    since: Since = None,
    until: Until = None,
    time_zone: Annotated[
        str, typer.Option("--time-zone", metavar="ZONE", help="Of times without an offset.")
    ] = "UTC",
    sacct_fields: Annotated[
        str | None,
        typer.Option("--sacct-fields", metavar="LIST", help="--format of a file without a header."),
    ] = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Take in Slurm's accounting, from files or from the cluster of this host.

    Facts are known from --since to --until; of files the default is the first submit to the last
    end, of a live cluster the end of the import before until now.
    A broken file is refused with its line, and nothing is taken in.

    Example: `unstrand import slurm --cluster c1 --sacct sacct.txt --nodes nodes.txt`
    """
    files = (sacct, nodes, events, topology, partitions)
    if live and any(file is not None for file in files):
        raise typer.BadParameter("--live asks the cluster itself: leave the files out")
    if not live and (sacct is None or nodes is None):
        raise typer.BadParameter(
            "give both --sacct and --nodes, or --live on a host of the cluster"
        )
    # Here, not above: the parsers load pandas through Arrow, a second that no other command owes.
    from collector.slurm.importer import import_files
    from collector.slurm.live_import import import_live

    with opened(db, create=True) as store:
        refuse_demo(store)
        with working(f"importing {cluster}"):
            if sacct is None or nodes is None:
                summary = import_live(store, cluster, since, until, utc_now())
            else:
                summary = import_files(
                    store, cluster, sacct=sacct, nodes=nodes, now=utc_now(), events=events,
                    topology=topology, partitions=partitions, since=since, until=until,
                    time_zone=time_zone, sacct_fields=sacct_fields,
                )  # fmt: skip
    _tell(summary, as_json=as_json)


def refuse_demo(store: Store) -> None:
    """Real facts must not mix with made-up ones."""
    if holds_demo(store):
        raise StoreError(
            f"{store.path} holds the demo cluster: import real facts into another file with --db"
        )


def _tell(summary: ImportSummary, *, as_json: bool) -> None:
    if not as_json:
        typer.echo("\n".join(summary.lines()))
        return
    rows = [{"table": name, "kept": count} for name, count in summary.kept.items()]
    print_document(
        {
            "cluster": summary.cluster, "since": summary.since, "until": summary.until,
            "rows": rows, "dropped": summary.dropped, "remarks": summary.remarks,
            "gpu_seconds": summary.gpu_seconds,
        },
        Format.JSON,
    )  # fmt: skip
