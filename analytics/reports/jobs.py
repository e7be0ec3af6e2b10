"""The jobs of a window: what records tell of each, with what it held, used and cost."""

from __future__ import annotations

from dataclasses import asdict, replace

from analytics.questions.jobs import jobs
from analytics.reports.efficiency import efficiency_report
from analytics.reports.report import Report, Row
from analytics.window import Window
from collector.store import Store

_OF_LEDGER = ("held_gpu_hours", "used_gpu_hours", "efficiency_ratio", "cost", "coverage_ratio")


def jobs_report(
    store: Store, window: Window, *, cluster: str | None = None, currency: str | None = None
) -> Report:
    """One row per GPU job that waited or ran in the window, the dearest first.

    Held and used GPU-hours, efficiency and cost are those of the window, and None for a job that
    held nothing in it. The total and the identity are those of the whole window, free GPUs
    included. Raises as `cost_report` does.
    """
    ledger = efficiency_report(
        store, window, ("cluster", "job"), cluster=cluster, currency=currency
    )
    held = {(row["cluster"], row["job"]): row for row in ledger.rows if row["job"] is not None}
    rows = []
    for job in jobs(store, window, cluster):
        found = held.get((job.cluster, job.job_id), {})
        rows.append({**asdict(job), **{name: found.get(name) for name in _OF_LEDGER}})
    return replace(ledger, by=("cluster", "job"), rows=sorted(rows, key=_dearest))


def _dearest(row: Row) -> tuple[object, ...]:
    cost, hours = row["cost"], row["held_gpu_hours"]
    return (cost is None, -(cost or 0), -(hours or 0), row["cluster"], row["job_id"])
