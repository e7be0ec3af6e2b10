"""A demo job as it is going to behave, and one run of it as the scheduler made it happen."""

from __future__ import annotations

from dataclasses import dataclass, field

HOUR = 3600
DAY = 24 * HOUR


@dataclass(slots=True)
class DemoJob:
    """What one job asks for and how it will behave once it runs; times in whole seconds.

    ``nodes`` equal shares of ``gpus``, ``cpus`` and ``mem_mib`` per node. ``activity`` is the mean
    share of held time in which its kernels run; after ``active_s`` it is 0.
    """

    name: str
    account: str
    user: str
    partition: str
    submit: int
    run_s: int
    limit_s: int
    gpus: int
    cpus: int
    mem_mib: int
    activity: float
    nodes: int = 1
    priority: int = 0
    qos: str = "normal"
    outcome: str = "COMPLETED"
    project: str | None = None
    active_s: int | None = None
    vram_ratio: float = 0.6
    host_cpu_ratio: float = 0.5
    host_mem_ratio: float = 0.6
    patience_s: int | None = None  # waited longer: the scheduler keeps nodes empty for it
    cancel_after_s: int | None = None  # withdrawn if still pending then
    attempts: int = 1  # it fails and is queued again until this many runs are done
    checkpoint_every_s: int | None = None
    preempt_after_s: int | None = None
    preemptor: DemoJob | None = None
    job_id: str = ""


@dataclass(slots=True, eq=False)
class DemoRun:
    """One run of a job; ``start`` None = never started, ``end`` None = open at the window's end.

    ``placement``: (index of the node in the fleet, indexes of its GPUs) for each node held.
    """

    job: DemoJob
    attempt: int
    eligible: int
    length_s: int
    start: int | None = None
    end: int | None = None
    state: str = "PENDING"
    reason: str | None = None
    placement: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)

    @property
    def run_id(self) -> str:
        """Stable over repeated builds: the job's id and the attempt."""
        return f"{self.job.job_id}:{self.attempt}"
