"""`unstrand import trace`: another cluster's past into the store."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from unstrand.clock import utc_now
from unstrand.commands.import_facts import refuse_demo, tell
from unstrand.commands.options import Db, Json, Server, instant
from unstrand.commands.progress import working
from unstrand.commands.send import send_files
from unstrand.commands.source import opened, server_for
from unstrand.import_documents import trace_document

if TYPE_CHECKING:
    from unstrand.trace_import import TraceQuestion


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
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Take in a trace: jobs, runs, what they held and when, on the nodes given.

    Where the file names no node, jobs are placed by a stated rule. A broken file is refused with
    its line, and nothing is taken in.

    Example: `unstrand import trace pods.csv --format openb --cluster openb --nodes nodes.csv`
    """
    if nodes is not None and shape is not None:
        raise typer.BadParameter("--nodes and --shape are two answers: give one of them")
    # Here, not above: Arrow costs a second that no other command owes.
    from unstrand.trace_import import TraceQuestion

    question = TraceQuestion(
        file=file, kind=kind, cluster=cluster, nodes=nodes, shape=shape, origin=origin,
        policy=policy,
    )  # fmt: skip
    address = server_for(db, server)
    with working(f"importing {cluster}"):
        told = _by_file(db, question) if address is None else _by_service(address, question)
    tell(told, as_json=as_json)


def _by_file(db: Path | None, question: TraceQuestion) -> dict[str, Any]:
    from unstrand.trace_import import take_in

    with opened(db, create=True) as store:
        refuse_demo(store)
        return trace_document(take_in(store, question, utc_now()))


def _by_service(address: str, question: TraceQuestion) -> dict[str, Any]:
    policy = question.policy
    in_file = Path(policy) if policy is not None and policy.endswith(".toml") else None
    fields = {
        "format": question.kind,
        "cluster": question.cluster,
        "shape": question.shape,
        "origin": None if question.origin is None else question.origin.isoformat(),
        "policy": policy if in_file is None else None,
    }
    files = {"file": question.file, "nodes": question.nodes, "policy_file": in_file}
    return cast(dict[str, Any], send_files(address, "import/trace", fields, files))
