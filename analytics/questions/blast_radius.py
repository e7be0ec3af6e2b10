"""What would stop if a part of the cluster failed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from analytics.questions import statement
from collector.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Blast:
    """One node, rack, leaf or spine (``level``) and what its failure would stop.

    ``gpus`` are its own; ``job_gpus`` all that the stopped jobs hold, also elsewhere.
    ``at_risk_gpu_hours``: work since each job's start or last finished checkpoint.
    """

    cluster: str
    level: str
    name: str
    nodes: int
    gpus: int
    jobs: int
    job_gpus: float
    accounts: int
    at_risk_gpu_hours: float


def blast_radius(store: Store, at: datetime, cluster: str | None = None) -> list[Blast]:
    """Every part at ``at``, the one whose failure stops the most GPUs first."""
    return [Blast(**row) for row in store.rows(statement("012_blast_radius"), [at, cluster])]
