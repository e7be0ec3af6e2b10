"""Why free GPUs did not serve the jobs that waited, at instants spread over the window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.caps import Caps
from scheduler_advisor.diagnosis.seen import Seen
from scheduler_advisor.past import Past

INSTANTS = 400  # a share of 5% is then known to a percentage point
LOOKED_AT = 50  # waiting jobs per instant, the oldest first: schedulers look at about 100


@dataclass(frozen=True, slots=True)
class Blocked:
    """Mean GPUs that stood free while jobs waited, by why the oldest of those that do not fit
    does not; ``gpus`` is the sum.

    ``shape``: enough GPUs are free for it, but no node has them together. ``cpu_mem``: on nodes
    with enough free GPUs the CPUs or the memory are gone. ``gang``: it needs several nodes, or
    more than is free: the cluster fills up for it. ``behind``: every waiting job that was looked
    at fits, and still none starts: a hold, or an order that the facts do not show. ``quota``: asked
    for by jobs that only a limit of their account, user or QoS holds back; jobs that no limit holds
    back come first in the count.
    """

    shape: float
    cpu_mem: float
    behind: float
    gang: float
    quota: float = 0.0

    @property
    def gpus(self) -> float:
        """All of it."""
        return self.shape + self.cpu_mem + self.behind + self.gang + self.quota


def blocked(past: Past, seen: Seen, caps: Caps | None = None) -> Blocked:
    """The mean over `INSTANTS` of the window, from real starts and real placements.

    ``caps``: the limits in force. Without any the scheduler's own word stands for them, see
    `Past.by_limit`.
    """
    sums = dict.fromkeys(("shape", "cpu_mem", "behind", "gang", "quota"), 0.0)
    state = _State(past, seen, caps)
    for at in instants(past):
        for why, gpus in state.why(float(at)):
            sums[why] += gpus / INSTANTS
    return Blocked(**sums)


def instants(past: Past) -> NDArray[np.float64]:
    """`INSTANTS` spread over the window."""
    return np.linspace(past.since, past.until, INSTANTS + 2)[1:-1]


class _State:
    def __init__(self, past: Past, seen: Seen, caps: Caps | None) -> None:
        jobs, cluster = past.jobs, past.cluster
        self._past, self._seen, self._caps = past, seen, caps
        self._start = past.real_start
        self._end = past.real_end
        self._gpus = past.gpus_held
        most = max(int(cluster.gpus.max(initial=1)), 1)
        open_shape = (jobs.tasks == 0) & (jobs.gpus > 0)
        self._tasks = np.where(open_shape, -(-jobs.gpus // most), np.maximum(jobs.tasks, 1))
        self._each = np.where(open_shape, np.minimum(jobs.gpus, most), jobs.gpus_per_task)
        self._each = np.where(jobs.gpu_milli > 0, jobs.gpu_milli / 1000, self._each)

    def why(self, at: float) -> list[tuple[str, float]]:
        """Reasons and the GPUs blocked for each at one instant."""
        jobs, seen = self._past.jobs, self._seen
        waiting = np.flatnonzero((jobs.eligible <= at) & (self._start > at) & (self._gpus > 0))
        if not len(waiting):
            return []
        held = (self._start[seen.job] <= at) & (at < self._end[seen.job])
        free = self._free(held, at)
        room = float(free[0].sum())
        limited = self._limited(waiting, at)
        left = waiting[~limited]
        amount = min(room, float(self._gpus[left].sum()))
        by_limit = min(room, float(self._gpus[waiting].sum())) - amount
        found = [("quota", by_limit)] if by_limit > 0 else []
        if amount > 0:
            found.append((self._head(left, free), amount))
        return found

    def _limited(self, waiting: NDArray[np.int64], at: float) -> NDArray[np.bool_]:
        if self._caps:
            running = np.flatnonzero((self._start <= at) & (at < self._end))
            return self._caps.hold_back(waiting, running)
        by_limit = self._past.by_limit
        return np.zeros(len(waiting), bool) if by_limit is None else by_limit[waiting] > 0

    def _head(self, waiting: NDArray[np.int64], free: tuple[NDArray[np.float64], ...]) -> str:
        head = next((j for j in waiting[:LOOKED_AT].tolist() if self._why_not(j, free)), None)
        return "behind" if head is None else self._why_not(head, free)

    def _why_not(self, job: int, free: tuple[NDArray[np.float64], ...]) -> str:
        """Why the job does not fit now; "" where it does."""
        jobs, tasks = self._past.jobs, int(self._tasks[job])
        by_gpu = free[0] >= self._each[job] - 1e-9
        if int(by_gpu.sum()) >= tasks:
            fits = by_gpu & (free[1] >= jobs.cpu_milli[job]) & (free[2] >= jobs.mem_mib[job])
            return "" if int(fits.sum()) >= tasks else "cpu_mem"
        if tasks > 1 or self._gpus[job] > float(free[0].sum()):
            return "gang"
        return "shape"

    def _free(self, held: NDArray[np.bool_], at: float) -> tuple[NDArray[np.float64], ...]:
        cluster, seen = self._past.cluster, self._seen
        size = len(cluster)
        away = np.zeros(size, bool)
        for outage in cluster.outages:
            if outage.down_at <= at and (outage.up_at is None or at < outage.up_at):
                away[cluster.index[outage.node]] = True
        frees = []
        for whole, part in (
            (cluster.gpus, seen.gpus),
            (cluster.cpu_milli, seen.cpu_milli),
            (cluster.mem_mib, seen.mem_mib),
        ):
            used = np.bincount(seen.node[held], weights=part[held], minlength=size)
            frees.append(np.where(away, 0.0, np.maximum(whole - used, 0.0)))
        return tuple(frees)
