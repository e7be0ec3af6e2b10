"""`unstrand import trace`: another cluster's past into the store."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unstrand.clock import utc_now
from unstrand.commands.import_facts import refuse_demo
from unstrand.commands.options import Db, Json, instant
from unstrand.commands.progress import working
from unstrand.commands.source import opened
from unstrand.output import Format, print_document

if TYPE_CHECKING:
    from collector.traces.importer import TraceSummary


def trace(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The trace.")],
    cluster: Annotated[str, typer.Option("--cluster", metavar="NAME", help="Name it goes under.")],
    kind: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="swf, openb, philly, itp, helios or jobs."),
    ],
    nodes: Annotated[
        Path | None, typer.Option("--nodes", metavar="FILE", help="Nodes it ran on: CSV or TOML.")
    ] = None,
    shape: Annotated[
        str | None, typer.Option("--shape", metavar="NxG", help="N nodes of G GPUs, such as 17x8.")
    ] = None,
    origin: Annotated[
        datetime | None,
        typer.Option(
            "--origin",
            metavar="TIME",
            parser=instant,
            help="Second 0 of a trace without a calendar. Default: 2020-01-01.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="NAME|FILE",
            help="Replay a trace without starts under this policy first; rows are tagged.",
        ),
    ] = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Take in a trace: jobs, runs, what they held and when, on the nodes given.

    Where the file names no node, jobs are placed by a stated rule. A broken file is refused with
    its line, and nothing is taken in.

    Example: `unstrand import trace pods.csv --format openb --cluster openb --nodes nodes.csv`
    """
    if nodes is not None and shape is not None:
        raise typer.BadParameter("--nodes and --shape are two answers: give one of them")
    # Here, not above: Arrow and the compiler cost seconds that no other command owes.
    from unstrand.commands.import_trace_run import TraceQuestion, take_in

    question = TraceQuestion(
        file=file,
        kind=kind,
        cluster=cluster,
        nodes=nodes,
        shape=shape,
        origin=origin,
        policy=policy,
    )
    with opened(db, create=True) as store:
        refuse_demo(store)
        with working(f"importing {cluster}"):
            summary = take_in(store, question, utc_now())
    _tell(summary, as_json=as_json)


def _tell(summary: TraceSummary, *, as_json: bool) -> None:
    if not as_json:
        typer.echo("\n".join(summary.lines()))
        return
    print_document(
        {
            "cluster": summary.cluster,
            "format": summary.format,
            "since": summary.since,
            "until": summary.until,
            "rows": [{"table": "job", "kept": summary.kept}],
            "dropped": dict(summary.dropped),
            "remarks": list(summary.remarks),
            "nodes": summary.nodes,
            "gpus": summary.gpus,
            "held_gpu_hours": summary.held_gpu_hours,
        },
        Format.JSON,
    )
