"""`unstrand mark`: say what happened to a run or to the cluster."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from collector.marks import KINDS, Mark, record_mark
from unstrand.clock import utc_now
from unstrand.commands.options import Cluster, Db, Server, instant
from unstrand.commands.send import send
from unstrand.commands.source import opened, server_for

Kind = Annotated[str, typer.Argument(metavar="KIND", help=f"One of {', '.join(KINDS)}.")]


def mark(
    kind: Kind,
    job: Annotated[
        str | None,
        typer.Option("--job", envvar="SLURM_JOB_ID", help="Default: the Slurm job it runs in."),
    ] = None,
    text: Annotated[str | None, typer.Option("--text", help="What happened, in words.")] = None,
    at: Annotated[
        datetime | None,
        typer.Option("--at", metavar="TIME", parser=instant, help="Default: now."),
    ] = None,
    node: Annotated[str | None, typer.Option("--node", help="Where, if it matters.")] = None,
    cluster: Cluster = None,
    db: Db = None,
    server: Server = None,
) -> None:
    """Record a checkpoint, a restore, a change of policy, or a note.

    Example: `unstrand mark policy-change --text "backfill depth 100 -> 500"`
    """
    made = Mark(kind=kind, ts=at or utc_now(), cluster=cluster, job_id=job, node=node, text=text)
    address = server_for(db, server)
    if address is None:
        with opened(db) as store, store.work() as work:
            record_mark(work, made)
    else:
        body = {"kind": kind, "ts": made.ts.isoformat(), "cluster": cluster, "job_id": job,
                "node": node, "text": text}  # fmt: skip
        send(address, "marks", body)
    typer.echo(f"marked {kind}" + (f" of job {job}" if job else ""))
