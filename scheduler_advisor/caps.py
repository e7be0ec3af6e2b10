"""Which waiting jobs a limit alone holds back: maxima of queues, limits of users, accounts, QoS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.counters import bound_by
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.limits import Limit, Scope
from scheduler_advisor.engine.live.make_tree import leaves_of, paths_up
from scheduler_advisor.engine.live.settings import QuotaPart
from scheduler_advisor.past import gpus_held

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
NO_CAP = np.inf


@dataclass(frozen=True, slots=True)
class Cap:
    """Counters that bind jobs: ``of``: each job's counter, -1 where it has none; ``counts``: also
    of jobs that raise one without being bound by it; of each counter the GPUs and jobs that it
    admits at once."""

    of: Ints
    counts: Ints
    gpus: NDArray[np.float64]
    jobs: NDArray[np.float64]


def paths_of(jobs: Jobs, quota: QuotaPart) -> list[list[str]]:
    """Names of the queues from each distinct leaf up, the leaf first, as `leaves_of` has them."""
    return paths_up(leaves_of(jobs, quota)[0], quota)


def members(jobs: Jobs, quota: QuotaPart, queue: str) -> Flags:
    """The jobs of a queue and of those below it."""
    _, leaf = leaves_of(jobs, quota)
    under = np.array([queue in path for path in paths_of(jobs, quota)], bool)
    mask: Flags = under[leaf]
    return mask


class Caps:
    """The limits of one cluster and policy over one set of jobs."""

    def __init__(self, jobs: Jobs, cluster: Cluster, quota: QuotaPart) -> None:
        self._gpus = gpus_held(jobs)
        self.caps = (*_of_queues(jobs, quota), *_of_limits(jobs, cluster.limits))

    def __bool__(self) -> bool:
        return bool(self.caps)

    def hold_back(self, waiting: Ints, running: Ints) -> Flags:
        """Of the jobs ``waiting``: those that would exceed a limit beside ``running``."""
        over = np.zeros(len(waiting), bool)
        for cap in self.caps:
            size = len(cap.gpus)
            held = running[cap.counts[running] >= 0]
            in_use = np.bincount(cap.counts[held], self._gpus[held], size)
            count = np.bincount(cap.counts[held], minlength=size)
            own = cap.of[waiting]
            bound = own >= 0
            gpus = in_use[own] + self._gpus[waiting] > cap.gpus[own] + 1e-9
            over |= bound & (gpus | (count[own] + 1 > cap.jobs[own]))
        return over


def _of_queues(jobs: Jobs, quota: QuotaPart) -> Iterator[Cap]:
    """One cap for each level of the tree: queues of one level share no job."""
    maxima = {rule.name: rule.maximum for rule in quota.queues if rule.maximum is not None}
    if not maxima:
        return
    _, leaf = leaves_of(jobs, quota)
    paths = [[name for name in path if name in maxima] for path in paths_of(jobs, quota)]
    for level in range(max((len(path) for path in paths), default=0)):
        # From the top, so that one queue is at one level for all of its jobs.
        names = [path[-1 - level] if level < len(path) else "" for path in paths]
        known = sorted(set(names) - {""})
        code = np.array([known.index(name) if name else -1 for name in names], np.int64)
        gpus = np.array([maxima[name] for name in known], float)
        yield Cap(code[leaf], code[leaf], gpus, np.full(len(known), NO_CAP))


def _of_limits(jobs: Jobs, limits: Sequence[Limit]) -> Iterator[Cap]:
    for limit in limits:
        if limit.scope is Scope.JOB:
            continue
        bound = bound_by(jobs, limit)
        column = {Scope.USER: jobs.user, Scope.ACCOUNT: jobs.account}.get(limit.scope)
        number = np.zeros(len(jobs), np.int64) if column is None else column.codes
        size = int(number.max(initial=0)) + 1
        gpus = NO_CAP if limit.max_gpus is None else float(limit.max_gpus)
        count = NO_CAP if limit.max_jobs is None else float(limit.max_jobs)
        # What jobs hold that another limit goes before counts against this one as well.
        counted = bound_by(jobs, replace(limit, but_qos=(), but_partitions=()))
        of, counts = (np.where(own, number, -1) for own in (bound, counted))
        yield Cap(of, counts, np.full(size, gpus), np.full(size, count))
