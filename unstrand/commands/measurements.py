"""`unstrand report waits|spread|breakers|checkpoints|repeats|activity|reclaims`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from analytics.window import Window
from collector.store import Store
from unstrand.commands.question import Asked, fetch
from unstrand.commands.windowed import windowed
from unstrand.output import print_document

Rows = Annotated[bool, typer.Option("--rows", help="One row per job or run, not per group.")]
By = Annotated[
    Literal["queue", "hour", "team"],
    typer.Option("--by", help="Queue and size, hour of the day, or team."),
]


@windowed
def waits(asked: Asked, by: By = "queue", rows: Rows = False) -> None:
    """How long jobs wait, by queue and size, by hour of the day or by team.

    Example: `unstrand report waits --by hour --time-zone Asia/Seoul`
    """
    _tell("waits", asked, rows=rows, by=by)


@windowed
def spread(asked: Asked, rows: Rows = False) -> None:
    """Multi-GPU runs on more nodes or leaf switches than they needed.

    Example: `unstrand report spread --since 2026-10-05 --until 2026-11-02`
    """
    _tell("spread", asked, rows=rows)


@windowed
def breakers(asked: Asked, rows: Rows = False) -> None:
    """Small jobs that break up big nodes: free GPU-hours beside them, and whom it hurt.

    Example: `unstrand report breakers --rows --format csv`
    """
    _tell("breakers", asked, rows=rows)


@windowed
def checkpoints(asked: Asked, rows: Rows = False) -> None:
    """How often checkpoints are written and how long recovery takes, where marks say so.

    Example: `unstrand report checkpoints --json`
    """
    _tell("checkpoints", asked, rows=rows)


@windowed
def repeats(asked: Asked, rows: Rows = False) -> None:
    """Jobs that run again and again, fast one day and slow another, against their placement.

    Example: `unstrand report repeats --rows --format csv`
    """
    _tell("repeats", asked, rows=rows)


@windowed
def activity(asked: Asked) -> None:
    """Held GPU-hours by how active they were: the distribution behind the mean.

    Example: `unstrand report activity --since 2026-10-05 --until 2026-11-02`
    """
    _tell("activity", asked, rows=False)


@windowed
def reclaims(asked: Asked, rows: Rows = False) -> None:
    """How fast lent GPUs came back to whoever has a quota, and what that cost those stopped.

    Example: `unstrand report reclaims --since 2026-10-05 --until 2026-11-02`
    """
    _tell("reclaims", asked, rows=rows)


def register(report_app: typer.Typer) -> None:
    """Put the commands under `unstrand report`."""
    for command in (waits, spread, breakers, checkpoints, repeats, activity, reclaims):
        report_app.command(command.__name__)(command)


def _tell(name: str, asked: Asked, *, rows: bool, **more: str) -> None:
    def answer(store: Store, window: Window) -> Any:
        from scheduler_advisor.measurements.documents import DOCUMENTS

        return DOCUMENTS[name](store, window, asked.cluster, rows=rows, **more)

    document = fetch(asked, f"report/{name}", answer, rows="true" if rows else None, **more)
    window = document["window"]
    notes = [
        f"window    {window['since']} to {window['until']}, {window['time_zone']}",
        f"numbers   {document['kind']}",
        *(f"remark    {remark}" for remark in document["remarks"]),
    ]
    print_document(document, asked.how, out=asked.out, notes=notes)
