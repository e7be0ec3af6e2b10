"""The queue as facts tell it: who waited from when to when, and for what shape."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from analytics.ledger import kernel as k


@dataclass(slots=True)
class PendingJobs:
    """Jobs that wait at some time of the window, in name order, with their events."""

    run_ids: list[str]
    jobs: k.Jobs
    allowed: k.Array
    events: list[tuple[int, int, int, int]] = field(default_factory=list)

    @classmethod
    def none(cls, pools: int) -> PendingJobs:
        """An empty queue."""
        return cls(
            [], k.Jobs(*(np.zeros(0, np.int64) for _ in range(14))), np.ones((1, pools), np.bool_)
        )
