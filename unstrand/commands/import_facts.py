"""`unstrand import`: facts of other systems into the store."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from collector.demo import holds_demo
from collector.errors import StoreError
from collector.store import Store
from unstrand.clock import utc_now
from unstrand.commands.options import Db, Json, Server, Since, Until
from unstrand.commands.progress import working
from unstrand.commands.send import send_files, send_long
from unstrand.commands.source import opened, server_for
from unstrand.import_documents import slurm_document
from unstrand.output import Format, print_document

_FILES = (
    "sacct", "nodes", "events", "topology", "partitions", "config", "qos", "associations",
)  # fmt: skip

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
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="scontrol show config.")
    ] = None,
    qos: Annotated[
        Path | None, typer.Option("--qos", metavar="FILE", help="sacctmgr -P show qos.")
    ] = None,
    associations: Annotated[
        Path | None,
        typer.Option("--associations", metavar="FILE", help="sacctmgr -P show assoc: limits."),
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
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Take in Slurm's accounting, from files or from the cluster of this host.

    Facts are known from --since to --until; of files the default is the first submit to the last
    end, of a live cluster the end of the import before until now. How the scheduler is set and what
    accounts may hold come with --live, or from --config, --qos and --associations. A service that
    holds the file takes them in; with --live it asks the Slurm of its own host.
    A broken file is refused with its line, and nothing is taken in.

    Example: `unstrand import slurm --cluster c1 --sacct sacct.txt --nodes nodes.txt`
    """
    files = (sacct, nodes, events, topology, partitions, config, qos, associations)
    if live and any(file is not None for file in files):
        raise typer.BadParameter("--live asks the cluster itself: leave the files out")
    if not live and (sacct is None or nodes is None):
        raise typer.BadParameter(
            "give both --sacct and --nodes, or --live on a host of the cluster"
        )
    question = SlurmQuestion(
        cluster, sacct, nodes, events, topology, partitions, config, qos, associations,
        since, until, time_zone, sacct_fields,
    )  # fmt: skip
    address = server_for(db, server)
    with working(f"importing {cluster}"):
        told = _by_file(db, question) if address is None else _by_service(address, question)
    tell(told, as_json=as_json)


@dataclass(frozen=True, slots=True)
class SlurmQuestion:
    """The options of one import; without ``sacct`` the Slurm of the host is asked."""

    cluster: str
    sacct: Path | None
    nodes: Path | None
    events: Path | None
    topology: Path | None
    partitions: Path | None
    config: Path | None
    qos: Path | None
    associations: Path | None
    since: datetime | None
    until: datetime | None
    time_zone: str
    sacct_fields: str | None


def _by_file(db: Path | None, question: SlurmQuestion) -> dict[str, Any]:
    # Here, not above: the parsers load pandas through Arrow, a second that no other command owes.
    from collector.slurm.importer import import_files
    from collector.slurm.live_import import import_live

    options = asdict(question)
    cluster, sacct, nodes = (options.pop(name) for name in ("cluster", "sacct", "nodes"))
    with opened(db, create=True) as store:
        refuse_demo(store)
        if sacct is None:
            summary = import_live(store, cluster, question.since, question.until, utc_now())
        else:
            summary = import_files(
                store, cluster, sacct=sacct, nodes=nodes, now=utc_now(), **options
            )
    return slurm_document(summary)


def _by_service(address: str, question: SlurmQuestion) -> dict[str, Any]:
    files = {name: getattr(question, name) for name in _FILES}
    fields = {name: value for name, value in asdict(question).items() if name not in files}
    for name in ("since", "until"):
        moment = fields[name]
        fields[name] = None if moment is None else moment.isoformat()
    if question.sacct is not None:
        return cast(dict[str, Any], send_files(address, "import/slurm", fields, files))
    live = {name: fields[name] for name in ("cluster", "since", "until")}
    return cast(dict[str, Any], send_long(address, "import/slurm/live", live))


def refuse_demo(store: Store) -> None:
    """Real facts must not mix with made-up ones."""
    if holds_demo(store):
        raise StoreError(
            f"{store.path} holds the demo cluster: import real facts into another file with --db"
        )


def tell(document: dict[str, Any], *, as_json: bool) -> None:
    """What an import did, in lines for people or whole for programs."""
    lines = document.pop("lines")
    if as_json:
        print_document(document, Format.JSON)
    else:
        typer.echo("\n".join(lines))
