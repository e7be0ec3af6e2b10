"""Free GPU time beside one job: what it stranded, and what stood free while it waited."""

from __future__ import annotations

from dataclasses import dataclass

from analytics.questions import statement
from collector.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCause:
    """``role`` causer: stranded by the job; waiter: stood free while it waited. Modelled."""

    ledger_class: str
    role: str
    rule: str
    gpu_hours: float


def job_causes(store: Store, cluster: str, job_id: str) -> list[JobCause]:
    """The ledger's causes that name the job, most GPU-hours first."""
    rows = store.rows(statement("005_job_causes"), [cluster, job_id])
    return [JobCause(ledger_class=row.pop("class"), **row) for row in rows]
