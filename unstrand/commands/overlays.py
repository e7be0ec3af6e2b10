"""`unstrand report evidence|fragmentation`: measures beside the ledger's classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

import typer

from analytics.window import Window
from collector.store import Store
from unstrand.commands.options import (
    Cluster,
    Db,
    How,
    Json,
    Out,
    Server,
    Since,
    TimeZone,
    Until,
    chosen,
)
from unstrand.commands.question import Asked, fetch
from unstrand.output import Format, print_document

Document = Mapping[str, Any]
Scope = Literal["cluster", "rack", "node"]


def evidence(
    job: Annotated[str | None, typer.Option("--job", help="Only of this job.")] = None,
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
    """Runs that are suspected to hang or lost work: what was seen, and what to look at.

    Example: `unstrand report evidence --since 2026-10-05 --until 2026-11-02`
    """
    asked = Asked(db, server, since, until, time_zone, cluster, chosen(how, as_json), out)

    def answer(store: Store, window: Window) -> Document:
        from analytics.reports.evidence import evidence_report

        return evidence_report(store, window, cluster=cluster, job=job).to_dict()

    document = fetch(asked, "report/evidence", answer, job=job)
    window = document["window"]
    said = [
        f"window    {window['since']} to {window['until']}, {window['time_zone']}",
        *(f"remark    {remark}" for remark in document["remarks"]),
    ]
    print_document(document, asked.how, out=asked.out, notes=said)


def fragmentation(
    by: Annotated[str, typer.Option("--by", metavar="cluster|rack|node", help="Of what.")] = (
        "cluster"
    ),
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
    """Fragmentation F hour by hour: free GPUs that a typical job could not use. Modelled.

    Example: `unstrand report fragmentation --by node --since 2026-10-12 --until 2026-10-13`
    """
    if by not in ("cluster", "rack", "node"):
        raise typer.BadParameter("--by: use cluster, rack or node")
    scope = cast(Scope, by)
    asked = Asked(db, server, since, until, time_zone, cluster, chosen(how, as_json), out)

    def answer(store: Store, window: Window) -> Document:
        from analytics.questions.fragmentation import fragmentation_report

        return fragmentation_report(store, window, scope, cluster)

    document = fetch(asked, "report/fragmentation", answer, by=by)
    tasks = document["tasks"]
    said = [
        f"window    {document['since']} to {document['until']}",
        f"numbers   {document['kind']}, against the jobs of the 28 days before",
        *(f"tasks     {name}: {len(tasks[name])} shapes of "
          f"{sum(task['jobs'] for task in tasks[name]):,} jobs, see --json" for name in tasks),
    ]  # fmt: skip
    print_document(document, asked.how, out=asked.out, notes=said)


def register(report_app: typer.Typer) -> None:
    """Put the commands under `unstrand report`."""
    for command in (evidence, fragmentation):
        report_app.command(command.__name__)(command)
