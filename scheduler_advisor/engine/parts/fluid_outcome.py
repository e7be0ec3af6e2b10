"""What the parts' driver tells beside an outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.outcome import Outcome

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FluidOutcome(Outcome):
    """`place_count`: places per job, since elastic jobs end with other tasks than they asked for.
    `paused_gpu_s`: GPU-seconds held in which a move, a resize or a cut kept the job from working.
    `short_replica_min`: replica-minutes of services that were wanted and did not run.
    `free_gpu_s`, `down_gpu_s` and `held_gpu_s` add up to all GPUs from first to last instant."""

    place_count: Ints
    migrations: Ints
    resizes: Ints
    stretched_s: Ints
    passes_of_moves: int
    paused_gpu_s: float
    short_replica_min: float

    def nodes(self, job: int) -> Ints:
        """The nodes of the job's last attempt, one entry per task."""
        first = int(self.place_start[job])
        return self.place_node[first : first + int(self.place_count[job])]
