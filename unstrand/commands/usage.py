"""`unstrand report efficiency|jobs`: how well GPU time was used, and by which jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer

from analytics.window import Window
from collector.store import Store
from unstrand.commands.options import (
    Currency,
    listed,
)
from unstrand.commands.question import Asked
from unstrand.commands.report import tell
from unstrand.commands.windowed import windowed


@windowed
def efficiency(
    asked: Asked,
    by: Annotated[str, typer.Option("--by", metavar="KEYS", help="As for report cost.")] = (
        "gpu_model"
    ),
    as_is: Annotated[
        bool, typer.Option("--as-is", help="Owners as they are now, not as they were then.")
    ] = False,
    currency: Currency = None,
) -> None:
    """Occupancy, efficiency, goodput and what a used GPU-hour cost.

    With --by weekday,hour_of_day it is the profile of the week, by day and night.

    Example: `unstrand report efficiency --by weekday,hour_of_day --time-zone Europe/Berlin`
    """
    keys = listed(by)
    as_of: Literal["now", "was"] = "now" if as_is else "was"

    def answer(store: Store, window: Window) -> Mapping[str, Any]:
        from analytics.reports import efficiency_report

        return efficiency_report(
            store, window, keys, cluster=asked.cluster, currency=currency, as_of=as_of
        ).to_dict()

    tell(asked, "report/efficiency", answer, by=",".join(keys), as_of=as_of, currency=currency)


@windowed
def jobs(asked: Asked, currency: Currency = None) -> None:
    """The GPU jobs of a window with what they held, used and cost, the dearest first.

    Example: `unstrand report jobs --since 2026-10-26 --until 2026-11-02 --format csv`
    """

    def answer(store: Store, window: Window) -> Mapping[str, Any]:
        from analytics.reports import jobs_report

        return jobs_report(store, window, cluster=asked.cluster, currency=currency).to_dict()

    tell(asked, "report/jobs", answer, currency=currency)


def register(report_app: typer.Typer) -> None:
    """Put the commands under `unstrand report`."""
    for command in (efficiency, jobs):
        report_app.command(command.__name__)(command)
