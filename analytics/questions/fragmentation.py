"""Fragmentation F over time: free GPUs that a typical job could not use, beside the ledger."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from analytics.questions import statement
from analytics.window import Window
from collector.store import Store

Scope = Literal["cluster", "rack", "node"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentedHour:
    """One hour of one cluster, rack or node; ``distribution`` names the typical tasks.

    Modelled: ``fragmented_gpu_hours`` is the mean over the tasks, by their share of jobs, of the
    free GPUs that a task could not use (Weng et al., FGD, USENIX ATC'23).
    """

    cluster: str
    name: str
    hour: datetime
    distribution: str
    free_gpu_hours: float
    fragmented_gpu_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TypicalTask:
    """One shape of a distribution: what a job holds of a node, and how many jobs did."""

    cpu_milli: int
    gpus: int
    gpu_milli: int
    gpu_models: list[str]
    jobs: int


def fragmentation(
    store: Store, window: Window, by: Scope = "cluster", cluster: str | None = None
) -> list[FragmentedHour]:
    """F hour by hour; an hour that is not in the ledger, or has no history of jobs, is left out."""
    rows = store.rows(statement("013_fragmentation"), [window.since, window.until, cluster, by])
    return [FragmentedHour(**row) for row in rows]


def typical_tasks(store: Store, distribution: str) -> list[TypicalTask]:
    """The tasks of a distribution, the most frequent first."""
    rows = store.rows(statement("014_task_distribution"), [distribution])
    return [TypicalTask(**row) for row in rows]


def fragmentation_report(
    store: Store, window: Window, by: Scope = "cluster", cluster: str | None = None
) -> dict[str, Any]:
    """Rows of `fragmentation` and the tasks of every distribution that they name, as a document."""
    rows = fragmentation(store, window, by, cluster)
    versions = sorted({row.distribution for row in rows})
    return {
        "since": window.since.isoformat(),
        "until": window.until.isoformat(),
        "by": [by, "hour"],
        "rows": [asdict(row) | {"hour": row.hour.isoformat()} for row in rows],
        "tasks": {name: [asdict(task) for task in typical_tasks(store, name)] for name in versions},
        "kind": "modelled",
    }
