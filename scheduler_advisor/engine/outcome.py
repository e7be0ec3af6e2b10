"""What became of every job, and the sums that the replay kept on its way."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.policy import Policy

Ints = NDArray[np.int64]


class State(StrEnum):
    """How a job stands when the replay is over."""

    DONE = "done"
    PENDING = "pending"
    UNPLACEABLE = "unplaceable"


STATES = tuple(State)


@dataclass(frozen=True, slots=True)
class Deadlock:
    """An instant from which jobs hold GPUs and none of them can ever be completed."""

    at: int
    jobs: int
    held_gpus: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Arrays in the order of `jobs`. Times of jobs that never started are meaningless: ask
    `started` first. `start` and `end` are those of the last attempt, `first_start` of the first.
    """

    jobs: Jobs
    cluster: Cluster
    policy: Policy
    first_start: Ints
    start: Ints
    end: Ints
    starts: Ints
    state: NDArray[np.int8]
    lost_s: Ints
    overhead_s: Ints
    preemptions: Ints
    place_start: Ints
    place_node: Ints
    deadlocks: tuple[Deadlock, ...]
    holding_gpu_s: float
    held_gpu_s: float
    queue_s: int
    events: int
    passes: int
    examined: int
    last_instant: int
    shadows: int
    prepare_s: float
    drive_s: float
    # What the general driver tells beside: None or 0 where another one replayed.
    left_s: Ints | None = None  # service that a job still lacks
    room_by: Ints | None = None  # 1: got its room by preemption, 2: by reclaim
    place_gpu: Ints | None = None  # per task its share's GPU, or bits of GPUs, where told apart
    room_asked_at: Ints | None = None  # when it asked for it; -1: never
    free_gpu_s: float = 0.0
    down_gpu_s: float = 0.0
    first_instant: int = 0
    slow_ppm: Ints | None = None  # what the last placement stretched run times to, in millionths

    @property
    def engine_s(self) -> float:
        """CPU-seconds of the engine itself, preparation of its arrays included."""
        return self.prepare_s + self.drive_s

    @property
    def started(self) -> NDArray[np.bool_]:
        """Jobs whose last attempt ran to its end."""
        return self.state == STATES.index(State.DONE)

    @property
    def wait(self) -> Ints:
        """Seconds from submit to the first start, of the jobs that are done."""
        done = self.started
        return self.first_start[done] - self.jobs.submit[done]

    def nodes(self, job: int) -> Ints:
        """The nodes of the job's last attempt, one entry per task."""
        if self.starts[job] == 0:
            return np.zeros(0, np.int64)
        tasks = int(self.jobs.tasks[job]) + (1 if self.jobs.rest_gpus[job] else 0)
        first = int(self.place_start[job])
        return self.place_node[first : first + tasks]
