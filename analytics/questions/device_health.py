"""Faults, memory errors, slowed clocks and temperature of every measured node."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from analytics.questions import statement
from analytics.window import Window
from collector.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHealth:
    """One node over a window. ``slowed_samples`` of ``throttle_samples`` had a slowed clock;
    ``throttle_samples`` 0 = not asked. ``ecc_uncorrected``: how much the counters grew."""

    cluster: str
    node: str
    faults: int
    last_code: int | None
    last_fault_at: datetime | None
    ecc_uncorrected: int | None
    slowed_samples: int | None
    throttle_samples: int | None
    hottest_c: float | None

    @property
    def sick(self) -> bool:
        """Whether anything is out of order."""
        return bool(self.faults or self.ecc_uncorrected or self.slowed_samples)


def device_health(store: Store, window: Window, cluster: str | None = None) -> list[NodeHealth]:
    """Every node that has faults or samples in the window, the sickest first."""
    rows = store.rows(statement("007_device_health"), [window.since, window.until, cluster])
    return [NodeHealth(**row) for row in rows]
