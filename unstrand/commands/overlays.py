"""`unstrand report evidence|fragmentation`: measures beside the ledger's classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

import typer

from analytics.window import Window
from collector.store import Store
from unstrand.commands.question import Asked, fetch
from unstrand.commands.windowed import windowed
from unstrand.output import print_document

Document = Mapping[str, Any]
Scope = Literal["cluster", "rack", "node"]


@windowed
def evidence(
    asked: Asked,
    job: Annotated[str | None, typer.Option("--job", help="Only of this job.")] = None,
) -> None:
    """Runs that are suspected to hang or lost work: what was seen, and what to look at.

    Example: `unstrand report evidence --since 2026-10-05 --until 2026-11-02`
    """

    def answer(store: Store, window: Window) -> Document:
        from analytics.reports.evidence import evidence_report

        return evidence_report(store, window, cluster=asked.cluster, job=job).to_dict()

    document = fetch(asked, "report/evidence", answer, job=job)
    window = document["window"]
    said = [
        f"window    {window['since']} to {window['until']}, {window['time_zone']}",
        *(f"remark    {remark}" for remark in document["remarks"]),
    ]
    print_document(document, asked.how, out=asked.out, notes=said)


@windowed
def fragmentation(
    asked: Asked,
    by: Annotated[str, typer.Option("--by", metavar="cluster|rack|node", help="Of what.")] = (
        "cluster"
    ),
) -> None:
    """Fragmentation F hour by hour: free GPUs that a typical job could not use. Modelled.

    Example: `unstrand report fragmentation --by node --since 2026-10-12 --until 2026-10-13`
    """
    if by not in ("cluster", "rack", "node"):
        raise typer.BadParameter("--by: use cluster, rack or node")
    scope = cast(Scope, by)

    def answer(store: Store, window: Window) -> Document:
        from analytics.questions.fragmentation import fragmentation_report

        return fragmentation_report(store, window, scope, asked.cluster)

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
