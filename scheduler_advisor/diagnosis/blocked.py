"""Why free GPUs did not serve the jobs that waited, at instants spread over the window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    at fits, and still none starts: a limit, a hold, or an order that the facts do not show.
    """

    shape: float
    cpu_mem: float
    behind: float
    gang: float

    @property
    def gpus(self) -> float:
        """All of it."""
        return self.shape + self.cpu_mem + self.behind + self.gang


def blocked(past: Past, seen: Seen) -> Blocked:
    """The mean over `INSTANTS` of the window, from real starts and real placements."""
    sums = dict.fromkeys(("shape", "cpu_mem", "behind", "gang"), 0.0)
    state = _State(past, seen)
    for at in np.linspace(past.since, past.until, INSTANTS + 2)[1:-1]:
        why, gpus = state.why(float(at))
        if why:
            sums[why] += gpus / INSTANTS
    return Blocked(**sums)


class _State:
    def __init__(self, past: Past, seen: Seen) -> None:
        jobs, cluster = past.jobs, past.cluster
        self._past, self._seen = past, seen
        self._start = past.real_start
        self._end = self._start + jobs.run
        self._gpus = past.gpus_held
        most = max(int(cluster.gpus.max(initial=1)), 1)
        open_shape = (jobs.tasks == 0) & (jobs.gpus > 0)
        self._tasks = np.where(open_shape, -(-jobs.gpus // most), np.maximum(jobs.tasks, 1))
        self._each = np.where(open_shape, np.minimum(jobs.gpus, most), jobs.gpus_per_task)
        self._each = np.where(jobs.gpu_milli > 0, jobs.gpu_milli / 1000, self._each)

    def why(self, at: float) -> tuple[str, float]:
        """The reason and the GPUs blocked at one instant; "" where nothing is."""
        jobs, seen = self._past.jobs, self._seen
        waiting = np.flatnonzero((jobs.eligible <= at) & (self._start > at) & (self._gpus > 0))
        if not len(waiting):
            return "", 0.0
        held = (self._start[seen.job] <= at) & (at < self._end[seen.job])
        free = self._free(held, at)
        room = float(free[0].sum())
        amount = min(room, float(self._gpus[waiting].sum()))
        if amount <= 0:
            return "", 0.0
        head = next((j for j in waiting[:LOOKED_AT].tolist() if self._why_not(j, free)), None)
        if head is None:
            return "behind", amount
        return self._why_not(head, free), amount

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
