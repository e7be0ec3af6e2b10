"""What really happened, beside what a replay needs: the workload, the cluster, the real starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.checkpoints import Checkpoints, as_asked
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.readers.jobs import JobsRead
from scheduler_advisor.readers.standing import as_it_stood

Ints = NDArray[np.int64]
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Past:
    """One window of one cluster; times are the replay's seconds.

    ``wait_s``: each job's real wait, None where the history has no starts (then nothing can be
    graded). Jobs that ran when the window began are replayed from their real start, jobs that
    waited then wait until it begins (see `readers.standing`); neither are judged. ``ran_s``: how
    long each really ran, where ``jobs.run`` is how long it would on the best placement, or without
    the time to write checkpoints; None: the same. ``origin_s``: second 0 in Unix time.
    ``by_limit``: jobs that the scheduler said a limit of an account or QoS held back; None: it was
    not asked. ``checkpoints``: how each job writes them, what stopped it; None where none shows it.
    """

    jobs: Jobs
    cluster: Cluster
    wait_s: Ints | None
    since: int
    until: int
    origin_s: int = 0
    name: str = ""
    remarks: tuple[str, ...] = field(default=())
    ran_s: Ints | None = None
    by_limit: Ints | None = None
    checkpoints: Checkpoints | None = None

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Jobs submitted in the window."""
        return (self.jobs.submit >= self.since) & (self.jobs.submit < self.until)

    @property
    def days(self) -> float:
        """Length of the window."""
        return (self.until - self.since) / DAY_S

    @property
    def gpus_held(self) -> NDArray[np.float64]:
        """GPUs that each job holds; a shared one in parts."""
        return gpus_held(self.jobs)

    @property
    def real_start(self) -> Ints:
        """When each job really started; only where there are real waits."""
        if self.wait_s is None:
            raise ValueError("no real starts are known")
        return self.jobs.submit + self.wait_s

    @property
    def real_end(self) -> Ints:
        """When each job really ended; only where there are real waits."""
        return self.real_start + (self.jobs.run if self.ran_s is None else self.ran_s)

    def day(self, place: int) -> datetime:
        """The UTC instant at which the window's day ``place`` begins."""
        return datetime.fromtimestamp(self.origin_s + self.since, UTC) + timedelta(days=place)


def gpus_held(jobs: Jobs) -> NDArray[np.float64]:
    """GPUs that each job holds; a shared one in parts."""
    shared = np.maximum(jobs.tasks, 1) * jobs.gpu_milli / 1000
    return np.where(jobs.gpu_milli > 0, shared, jobs.gpus).astype(np.float64)


def past_of(
    read: JobsRead,
    cluster: Cluster,
    *,
    since: int | None = None,
    until: int | None = None,
    origin_s: int = 0,
    name: str = "",
) -> Past:
    """The past of what was read; the window is first submit to last submit unless given."""
    jobs, wait = read.jobs, read.observed_wait_s
    first = int(jobs.submit.min()) if since is None else since
    last = int(jobs.submit.max()) + 1 if until is None else until
    if wait is not None:
        wait = np.maximum(wait, 0).astype(np.int64)
        jobs, wait = as_it_stood(jobs, wait, first)
    known = read.checkpoints
    known = as_asked(jobs) if known is None else known.of(jobs.job_id)
    ran = None if known is None else np.where(known.known, known.spanned, jobs.run)
    return Past(jobs, cluster, wait, first, last, origin_s, name, tuple(read.remarks),
                ran_s=ran, checkpoints=known)  # fmt: skip
