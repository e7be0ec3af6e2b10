"""How boards were cut into MIG instances at one instant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from analytics.questions import statement
from collector.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class MigInstance:
    """One instance; ``gpu_slices`` and ``placement_start`` None = the source does not say.

    ``placement_start`` counts the board's memory slices. Compute instances of one GPU instance
    share its place and memory. ``mem_total_mib`` is that of the board.
    """

    cluster: str
    node: str
    gpu_uuid: str
    mig_uuid: str
    profile: str | None
    gpu_instance_id: int | None
    gpu_slices: int | None
    mem_mib: int | None
    placement_start: int | None
    gpu_model: str | None
    mem_total_mib: int | None


def mig_layout(store: Store, at: datetime, cluster: str | None = None) -> list[MigInstance]:
    """Every instance that stood at ``at``, board by board."""
    rows = store.rows(statement("008_mig_layout"), [at, cluster])
    return [MigInstance(**row) for row in rows]
