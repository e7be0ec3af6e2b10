"""What every node's GPUs were in, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from analytics.questions import statement
from analytics.window import Window
from collector.store import Store

_KEYS = ("cluster", "node", "gpu_model", "ts")


@dataclass(frozen=True, slots=True)
class FleetCell:
    """GPU-hours per ledger class of one pool over the step that begins at ``ts``."""

    cluster: str
    node: str
    gpu_model: str
    ts: datetime
    gpu_hours: Mapping[str, float]

    @property
    def largest(self) -> str:
        """The class with the most GPU time; the first by name where two are even."""
        return max(sorted(self.gpu_hours), key=lambda name: self.gpu_hours[name])


def fleet_map(
    store: Store, window: Window, step_h: int, cluster: str | None = None
) -> list[FleetCell]:
    """One cell per pool and step of ``step_h`` hours counted from the window's beginning."""
    asked = [window.since, window.until, step_h, cluster]
    cells = []
    for row in store.rows(statement("006_fleet_map"), asked):
        keys = {key: row.pop(key) for key in _KEYS}
        cells.append(FleetCell(**keys, gpu_hours=row))
    return cells
