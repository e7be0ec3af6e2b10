"""How long jobs wait: by queue, size class and hour of day, and how the waits are distributed.

A job's wait is its first eligible time to its first start; a requeued job waits once. A job that
has not started by the end of the window is counted apart, with the wait it has had so far: a
lower bound that must not be mixed with finished waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from zoneinfo import ZoneInfo

from collector.store import Work
from scheduler_advisor.measurements.quantiles import quantile
from scheduler_advisor.measurements.sizes import SIZE_CLASSES, size_class
from scheduler_advisor.window import Window

BUCKETS_S = (60, 600, 3600, 6 * 3600, 86400)  # under 1 min, 10 min, 1 h, 6 h, 1 day, and over

# One row = one GPU job that became eligible in the window, with its first start.
_JOBS = """
SELECT r.cluster, r.job_id, any_value(j.name) AS name, any_value(r.user_name) AS user_name,
  any_value(r.account) AS account, any_value(r.qos) AS qos,
  arg_min(r.partition, r.attempt) AS queue, max(r.gpus) AS gpus,
  min(coalesce(r.eligible_at, r.submit_at)) AS eligible_at, min(r.start_at) AS start_at,
  max(r.end_at) AS end_at, arg_max(r.reason, r.attempt) AS reason
FROM job_run r LEFT JOIN job j ON j.cluster = r.cluster AND j.job_id = r.job_id
WHERE ($3::VARCHAR IS NULL OR r.cluster = $3) AND r.gpus > 0
GROUP BY r.cluster, r.job_id
HAVING min(coalesce(r.eligible_at, r.submit_at)) >= $1
   AND min(coalesce(r.eligible_at, r.submit_at)) < $2
ORDER BY r.cluster, r.job_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWait:
    """One job's wait in seconds; ``started`` False = still waiting, or gone without a start."""

    cluster: str
    job_id: str
    name: str | None
    user_name: str | None
    account: str | None
    qos: str | None
    queue: str | None
    gpus: int
    eligible_at: datetime
    wait_s: float
    started: bool
    reason: str | None

    @property
    def size(self) -> str:
        """The job's size class."""
        return size_class(self.gpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitGroup:
    """Waits of the started jobs of one group, and the count of those that have not started."""

    queue: str | None
    size: str | None
    hour: int | None
    jobs: int
    p50_s: float | None
    p95_s: float | None
    max_s: float | None
    waited_gpu_hours: float
    not_started: int


def job_waits(work: Work, window: Window, cluster: str | None = None) -> list[JobWait]:
    """Every GPU job that became eligible in the window, with its wait as known at its end."""
    waits = []
    for row in work.rows(_JOBS, [window.since, window.until, cluster]):
        start, end = row.pop("start_at"), row.pop("end_at")
        started = start is not None and start <= window.until
        until = start if started else min(end or window.until, window.until)
        wait_s = max(0.0, (until - row["eligible_at"]).total_seconds())
        waits.append(JobWait(**row, wait_s=wait_s, started=started))
    return waits


def by_queue_and_size(waits: Iterable[JobWait]) -> list[WaitGroup]:
    """One group per queue and size class, queues by name, sizes ascending."""
    order = {name: place for place, name in enumerate(SIZE_CLASSES)}
    key = lambda w: (w.queue or "", order[w.size])  # noqa: E731
    groups = []
    for _, members in groupby(sorted(waits, key=key), key):
        jobs = list(members)
        groups.append(_group(jobs, queue=jobs[0].queue, size=jobs[0].size))
    return groups


def by_hour(waits: Iterable[JobWait], zone: ZoneInfo) -> list[WaitGroup]:
    """One group per local hour of day at which jobs became eligible, where there were any."""
    key = lambda w: w.eligible_at.astimezone(zone).hour  # noqa: E731
    return [_group(list(g), hour=hour) for hour, g in groupby(sorted(waits, key=key), key)]


def distribution(waits: Iterable[JobWait]) -> list[int]:
    """Counts of started jobs per bucket of `BUCKETS_S`; the last one is everything longer."""
    counts = [0] * (len(BUCKETS_S) + 1)
    for wait in waits:
        if wait.started:
            counts[sum(wait.wait_s >= edge for edge in BUCKETS_S)] += 1
    return counts


def _group(
    jobs: list[JobWait],
    queue: str | None = None,
    size: str | None = None,
    hour: int | None = None,
) -> WaitGroup:
    done = sorted(job.wait_s for job in jobs if job.started)
    return WaitGroup(
        queue=queue, size=size, hour=hour, jobs=len(done),
        p50_s=quantile(done, 0.5), p95_s=quantile(done, 0.95), max_s=done[-1] if done else None,
        waited_gpu_hours=sum(job.wait_s * job.gpus for job in jobs) / 3600,
        not_started=len(jobs) - len(done),
    )  # fmt: skip
