"""Who waited for GPUs at one instant, in the order of the queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from analytics.questions import statement
from analytics.reports.stranding_at import LEVELS, Shape
from collector.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """One waiting job; ``known_from``: snapshot (the scheduler's order) | records (rebuilt)."""

    cluster: str
    job_id: str
    name: str | None
    queue: str | None
    user_name: str | None
    account: str | None
    gpus: int
    nodes: int
    cpus: int | None
    mem_mib: int | None
    gpu_model: str | None
    topology: str | None
    reason: str | None
    since: datetime
    known_from: str

    @property
    def shape(self) -> Shape:
        """What it asks for on each node, rounded up where its total does not divide."""
        return Shape(
            gpus=-(-self.gpus // self.nodes),
            nodes=self.nodes,
            cpus=-(-(self.cpus or 0) // self.nodes),
            mem_mib=-(-(self.mem_mib or 0) // self.nodes),
            gpu_model=self.gpu_model,
            partition=self.queue,
            topology=self.topology if self.topology in LEVELS else None,
        )


def queue_at(store: Store, at: datetime, cluster: str | None = None) -> list[QueuedJob]:
    """GPU jobs that waited at ``at``, the first in order first, cluster by cluster."""
    return [QueuedJob(**row) for row in store.rows(statement("002_queue_at"), [at, cluster])]
