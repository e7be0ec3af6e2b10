"""`unstrand report stranding`: why free GPUs could not be used, over a window or at an instant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analytics.health.span import facts_span
from analytics.window import LAST_YEAR, Window
from collector.errors import StoreError
from collector.store import Store
from unstrand.commands.options import (
    Cluster,
    Currency,
    Db,
    How,
    Json,
    Out,
    Server,
    Since,
    TimeZone,
    Until,
    chosen,
    instant,
    listed,
)
from unstrand.commands.question import Asked, fetch
from unstrand.commands.report import notes
from unstrand.commands.source import ask, opened, server_for
from unstrand.output import Format, print_document

if TYPE_CHECKING:
    from analytics.reports.stranding_at import Shape

Document = Mapping[str, Any]
INSTANT = timedelta(seconds=1)
_SHAPE = "Job that would like to start"


def stranding(
    by: Annotated[
        str, typer.Option("--by", metavar="KEYS", help="Of who caused it or waited; see cost.")
    ] = "team",
    at: Annotated[
        datetime | None,
        typer.Option("--at", metavar="TIME", parser=instant, help="GPUs at one instant."),
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option("--gpus", min=1, help="GPUs on each node.", rich_help_panel=_SHAPE),
    ] = None,
    nodes: Annotated[
        int, typer.Option("--nodes", min=1, help="Nodes.", rich_help_panel=_SHAPE)
    ] = 1,
    cpus: Annotated[
        int, typer.Option("--cpus", min=0, help="CPUs on each node.", rich_help_panel=_SHAPE)
    ] = 0,
    mem_mib: Annotated[
        int,
        typer.Option("--mem-mib", min=0, help="Memory on each node.", rich_help_panel=_SHAPE),
    ] = 0,
    gpu_model: Annotated[
        str | None,
        typer.Option("--gpu-model", help="Only GPUs of this model.", rich_help_panel=_SHAPE),
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option("--partition", help="Only nodes of it.", rich_help_panel=_SHAPE),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(
            "--topology",
            metavar="leaf|rack|spine",
            help="All nodes under one of these.",
            rich_help_panel=_SHAPE,
        ),
    ] = None,
    currency: Currency = None,
    since: Since = None,
    until: Until = None,
    time_zone: TimeZone = "UTC",
    cluster: Cluster = None,
    db: Db = None,
    server: Server = None,
    how: How = Format.TABLE,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Why free GPUs could not be used, who caused it and who waited; causes are modelled.

    With --gpus: why a job of that shape cannot start at the instant (by default the last one
    known), node by node, and the smallest release that would let it.

    Example: `unstrand report stranding --by node,team --at 2026-10-12T12:00`

    Example: `unstrand report stranding --gpus 8 --at 2026-10-12T12:00`
    """
    if at is not None and (since is not None or until is not None):
        raise typer.BadParameter("--at is one instant: leave --since and --until out")
    if at is not None and at.year > LAST_YEAR:
        raise typer.BadParameter(f"--at lies after the year {LAST_YEAR}")
    if gpus is not None:
        if since is not None or until is not None:
            raise typer.BadParameter("a job starts at one instant: give --at, not --since, --until")
        asked = Asked(db, server, cluster=cluster, how=chosen(how, as_json), out=out)
        # Here, not above: the state of a cluster loads the compiler, which --help does not need.
        from analytics.reports.stranding_at import Shape

        _tell_start(asked, at, Shape(
            gpus=gpus, nodes=nodes, cpus=cpus, mem_mib=mem_mib, gpu_model=gpu_model,
            partition=partition, topology=topology,
        ))  # fmt: skip
        return
    if (nodes, cpus, mem_mib, gpu_model, partition, topology) != (1, 0, 0, None, None, None):
        raise typer.BadParameter("a shape needs --gpus")
    if at is not None:
        since, until = at, at + INSTANT
    asked = Asked(db, server, since, until, time_zone, cluster, chosen(how, as_json), out)
    _tell_window(asked, listed(by), currency, at_instant=at is not None)


def _tell_window(
    asked: Asked, keys: tuple[str, ...], currency: str | None, *, at_instant: bool
) -> None:
    def answer(store: Store, window: Window) -> Document:
        from analytics.reports import stranding_report

        return stranding_report(
            store, window, keys, cluster=asked.cluster, currency=currency
        ).to_dict()

    document = fetch(asked, "report/stranding", answer, by=",".join(keys), currency=currency)
    if at_instant:
        document = {
            **document,
            "rows": [_gpus(row) for row in document["rows"]],
            "total": _gpus(document["total"]),
        }
    print_document(document, asked.how, out=asked.out, notes=notes(document))


def _gpus(row: Mapping[str, Any]) -> dict[str, Any]:
    """GPU-hours of the instant as the GPUs that they are; money of a second says nothing."""
    per_hour = timedelta(hours=1) / INSTANT
    return {
        (name[: -len("_hours")] + "s" if name.endswith("gpu_hours") else name): (
            round(value * per_hour, 6)
            if name.endswith("gpu_hours") and value is not None
            else value
        )
        for name, value in row.items()
        if name != "cost"
    }


def _tell_start(asked: Asked, at: datetime | None, shape: Shape) -> None:
    answer = _start(asked, at, shape)
    release = answer["release"]
    lines = [
        f"at        {answer['at']}",
        f"verdict   {answer['verdict']}",
        *([] if release is None else [f"release   {', '.join(release)}: "
                                      f"{answer['release_gpus']} GPUs in all"]),
    ]  # fmt: skip
    rows = [row | {"release": ", ".join(row["release"]) or None} for row in answer["nodes"]]
    document = answer if asked.how is Format.JSON else {"rows": rows}
    print_document(document, asked.how, out=asked.out, notes=lines)


def _start(asked: Asked, at: datetime | None, shape: Shape) -> dict[str, Any]:
    from analytics.reports.stranding_at import stranding_at

    server = server_for(asked.db, asked.server)
    if server is not None:
        moment = None if at is None else at.isoformat().replace("+00:00", "Z")
        found: dict[str, Any] = ask(
            server, "cluster/start", at=moment, cluster=asked.cluster, **asdict(shape)
        )
        return found
    with opened(asked.db) as store:
        known = facts_span(store, asked.cluster)
        if known is None:
            raise StoreError(
                f"{store.path} holds no facts of that cluster: import some first "
                "(unstrand import slurm --help)"
            )
        return stranding_at(store, at or known.until, shape, cluster=asked.cluster).to_dict()


def register(report_app: typer.Typer) -> None:
    """Put the command under `unstrand report`."""
    report_app.command("stranding")(stranding)
