"""What a looser placement costs here, from repeated runs, as the replay's network model.

Runs of one job that were slower where they sat looser give the slowdown; with the all-reduce time
of both placements by the links' table that is a communication fraction f. Only the product of f
and the ratio of the times is measured. The uplinks are taken to be shared as little as keeps the
median f at no more than `LIKELY`, since a job that only communicates is no job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.diagnosis.seen import Seen
from scheduler_advisor.engine.parts.allreduce import (
    PPM,
    Path,
    allreduce_s,
    slowdown_ppm,
    spread_of,
)
from scheduler_advisor.engine.parts.levels import tree_of
from scheduler_advisor.engine.parts.places import islands_of, narrowed_links
from scheduler_advisor.engine.parts.settings import TopologyPart
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.measurements.repeats import Repeat
from scheduler_advisor.past import Past

SHARED = (1.0, 2.0, 4.0, 8.0, 16.0)  # hosts' bandwidth over the uplinks' of a leaf
LIKELY = 0.5  # a job that is half communication is the most that published profiles show
MOST_F = 0.9
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Network:
    """The past with run times as on the best placement, and the model that stretches them again.

    ``fraction``: median communication fraction of the measured classes. ``measured_jobs``: jobs
    whose own repeated runs gave theirs; ``assumed_jobs``: other gangs, that get the median.
    """

    past: Past
    part: TopologyPart
    fraction: float
    measured_jobs: int
    assumed_jobs: int


def network_of(past: Past, seen: Seen, repeats: Sequence[Repeat]) -> Network | None:
    """The network as repeated runs show it; None where none was slower for its placement."""
    explained = [each for each in repeats if each.placement_explains]
    if not explained or len(set(past.cluster.leaf)) < 2:
        return None
    place = {str(name): at for at, name in enumerate(past.jobs.job_id)}
    classes = [found for each in explained if (found := _class(each, place))]
    for shared in SHARED:
        part = TopologyPart(slowdown=True, oversubscription=shared)
        times = _Times(past, seen, part)
        fractions = {each: f for each in classes if (f := times.fraction(each)) is not None}
        if fractions and (np.median(list(fractions.values())) <= LIKELY or shared == SHARED[-1]):
            return _network(past, part, times, fractions, place, repeats)
    return None


@dataclass(frozen=True, slots=True)
class _Class:
    """Jobs that ran slow and fast, and how much slower."""

    slow: tuple[int, ...]
    fast: tuple[int, ...]
    ratio: float


def _class(repeat: Repeat, place: Mapping[str, int]) -> _Class | None:
    slow_runs = set(repeat.slow)
    slow = tuple(place[run.job_id] for run in repeat.slow if run.job_id in place)
    others = [run for run in repeat.runs if run not in slow_runs]
    fast = tuple(place[run.job_id] for run in others if run.job_id in place)
    if not slow or not fast:
        return None
    took = float(np.median([run.run_s for run in repeat.slow]))
    return _Class(slow, fast, took / float(np.median([run.run_s for run in others])))


class _Times:
    """All-reduce times of the real placements over the best ones, under one model."""

    def __init__(self, past: Past, seen: Seen, part: TopologyPart) -> None:
        self._past, self._part = past, part
        tree, cluster = tree_of(past.cluster), past.cluster
        self._tree, self._islands = tree, islands_of(cluster)
        policy = Policy(topology=part)
        self._links = {model: narrowed_links(model, policy) for model in set(cluster.gpu_model)}
        order = np.argsort(seen.job, kind="stable")
        self._node, self._gpus = seen.node[order], seen.gpus[order]
        self._first = np.searchsorted(seen.job[order], np.arange(len(past.jobs) + 1))
        self._best: dict[tuple[int, int], float] = {}

    def excess(self, job: int) -> float:
        """t(placement) / t(best) - 1; 0 for what is no gang, or not seen anywhere."""
        own = slice(int(self._first[job]), int(self._first[job + 1]))
        nodes, gpus = self._node[own], self._gpus[own].astype(int)
        nodes, gpus = nodes[gpus > 0], gpus[gpus > 0]
        if len(nodes) < 2:
            return 0.0
        links = self._links[self._past.cluster.gpu_model[int(nodes[0])]]
        message = float(self._part.message_mib * MIB)
        here = allreduce_s(spread_of(self._pieces(nodes.tolist(), gpus.tolist())), links, message)
        best = self._best_s(len(nodes), int(gpus.sum()))
        return max(0.0, here / best - 1) if best > 0 else 0.0

    def fraction(self, each: _Class) -> float | None:
        """f with which the model makes the slow runs that much slower; None: it cannot."""
        slow = float(np.median([self.excess(job) for job in each.slow]))
        fast = float(np.median([self.excess(job) for job in each.fast]))
        room = slow - each.ratio * fast
        return min(MOST_F, (each.ratio - 1) / room) if room > 0 else None

    def _best_s(self, nodes: int, gpus: int) -> float:
        """The same GPUs on full nodes of one model, in the largest leaves."""
        if (nodes, gpus) not in self._best:
            cluster = self._past.cluster
            each = min(int(cluster.gpus.max()), gpus)
            count = -(-gpus // each)
            chosen = self._tightest(count)
            sizes = [each] * (len(chosen) - 1) + [gpus - each * (len(chosen) - 1)]
            links = self._links[cluster.gpu_model[chosen[0]]]
            spread = spread_of(self._pieces(chosen, sizes))
            self._best[nodes, gpus] = allreduce_s(
                spread, links, float(self._part.message_mib * MIB)
            )
        return self._best[nodes, gpus]

    def _tightest(self, count: int) -> list[int]:
        leaf = self._tree.leaf
        sizes = np.bincount(leaf)
        whole = np.flatnonzero(sizes >= count)
        order = [int(whole[np.argmin(sizes[whole])])] if len(whole) else np.argsort(-sizes).tolist()
        nodes = [node for code in order for node in np.flatnonzero(leaf == code).tolist()]
        return nodes[:count]

    def _pieces(self, nodes: Iterable[int], gpus: Iterable[int]) -> list[Path]:
        found: list[Path] = []
        for node, count in zip(nodes, gpus, strict=True):
            size = int(self._islands[node]) or count
            spine, leaf = int(self._tree.spine[node]), int(self._tree.leaf[node])
            found += [
                (spine, leaf, node, at, min(size, count - at * size))
                for at in range(-(-count // size))
            ]
        return found


def _network(
    past: Past,
    part: TopologyPart,
    times: _Times,
    fractions: Mapping[_Class, float],
    place: Mapping[str, int],
    repeats: Sequence[Repeat],
) -> Network:
    jobs, usual = past.jobs, float(np.median(list(fractions.values())))
    gang = jobs.tasks > 1
    measured = jobs.comm_milli > 0  # by traffic
    milli = np.where(gang & ~measured, max(1, round(usual * 1000)), jobs.comm_milli)
    own = gang & measured
    for each, f in fractions.items():
        members = list(each.slow + each.fast)
        milli[members], own[members] = max(1, round(f * 1000)), True
    steady = _members([each for each in repeats if not each.placement_explains], place)
    milli[steady] = jobs.comm_milli[steady]
    run = jobs.run.copy()
    for job in np.flatnonzero(gang).tolist():
        slow = slowdown_ppm(int(milli[job]), 1.0 + times.excess(job), 1.0)
        run[job] = max(1, round(int(run[job]) * PPM / slow))
    changed = jobs.changed(run=run, comm_milli=milli)
    assumed = int((gang & ~own).sum()) - len(steady)
    return Network(
        replace(past, jobs=changed, ran_s=jobs.run if past.ran_s is None else past.ran_s),
        part,
        usual,
        int(own.sum()),
        max(assumed, 0),
    )


def _members(repeats: Sequence[Repeat], place: Mapping[str, int]) -> NDArray[np.int64]:
    found = [place[run.job_id] for each in repeats for run in each.runs if run.job_id in place]
    return np.array(found, np.int64)
