"""What communication costs in a replay: GPU-seconds in all-reduces, and the load of uplinks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.outcome import Outcome
from scheduler_advisor.engine.parts.allreduce import PPM, allreduce_s, comm_of, spread_of
from scheduler_advisor.engine.parts.levels import tree_of
from scheduler_advisor.engine.parts.places import narrowed_links

Ints = NDArray[np.int64]
HOUR_S = 3600
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Communication:
    """GPU-seconds of the jobs that are done. `all_reduce`: in all-reduces; `penalty`: of them what
    the best placement would not have cost; `on_defaults`: the part of `all_reduce` of jobs whose
    communication fraction is a default and no measurement."""

    all_reduce_gpu_s: float
    penalty_gpu_s: float
    on_defaults_gpu_s: float


def communication(outcome: Outcome) -> Communication:
    """Sums over jobs of GPUs x run x (f + slowdown - 1): f of the run time on the best placement,
    and what the placement adds to it. Zero where the replay did not stretch run times."""
    if outcome.slow_ppm is None:
        return Communication(0.0, 0.0, 0.0)
    spent, added, guessed = by_job(outcome)
    return Communication(float(spent.sum()), float(added.sum()), float(spent[guessed].sum()))


def by_job(outcome: Outcome) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Per job its GPU-seconds in all-reduces, what the placement added to them, and whether its
    fraction is a default; 0 for jobs that are not done, and where nothing was stretched."""
    jobs, done = outcome.jobs, outcome.started
    told = comm_of(jobs.comm_milli.tolist(), jobs.gpus.tolist(), outcome.policy.topology.comm_milli)
    fraction = np.array([milli / 1000 for milli, _ in told])
    guessed = np.array([default for _, default in told], bool)
    weight = np.where(done & (outcome.slow_ppm is not None), jobs.gpus * jobs.run, 0).astype(float)
    slow = np.full(len(jobs), PPM) if outcome.slow_ppm is None else outcome.slow_ppm
    added = weight * ((slow - PPM) / PPM)
    return weight * fraction + added, added, guessed


@dataclass(frozen=True, slots=True)
class Saving:
    """All-reduce GPU-seconds before and after, and how much of the cut rests on defaults."""

    before_gpu_s: float
    after_gpu_s: float
    on_defaults_ratio: float

    @property
    def cut_ratio(self) -> float:
        """The part of the time that is gone; 0 where there was none."""
        return 1 - self.after_gpu_s / self.before_gpu_s if self.before_gpu_s else 0.0


def saving(before: Outcome, after: Outcome) -> Saving:
    """The cut from one replay of the same jobs to another."""
    one, other = communication(before), communication(after)
    cut = one.all_reduce_gpu_s - other.all_reduce_gpu_s
    guessed = one.on_defaults_gpu_s - other.on_defaults_gpu_s
    return Saving(
        one.all_reduce_gpu_s,
        other.all_reduce_gpu_s,
        min(1.0, max(0.0, guessed / cut)) if cut else 0.0,
    )


def uplink_load(outcome: Outcome) -> tuple[Ints, NDArray[np.float64], NDArray[np.float64]]:
    """Leaves, mean load of each leaf's uplinks by hour in 10^9 bytes/s, [leaf, hour] from the first
    submit on, and what each leaf's uplinks carry.

    A gang over L leaves sends 2 (L - 1) / L of each message up from every leaf that it lies in; it
    makes f x run / t(best) all-reduces between its start and its end."""
    jobs, policy, cluster = outcome.jobs, outcome.policy, outcome.cluster
    tree = tree_of(cluster)
    leaves = np.unique(tree.leaf)
    origin = int(jobs.submit.min(initial=0))
    hours = max(1, -(-(outcome.last_instant - origin) // HOUR_S))
    sent = np.zeros((len(leaves), hours))
    links = {model: narrowed_links(model, policy) for model in set(cluster.gpu_model)}
    message = float(policy.topology.message_mib * MIB)
    told = comm_of(jobs.comm_milli.tolist(), jobs.gpus.tolist(), policy.topology.comm_milli)
    for job in np.flatnonzero(outcome.started).tolist():
        nodes = outcome.nodes(job)
        used = np.unique(tree.leaf[nodes])
        if len(used) < 2 or outcome.end[job] <= outcome.start[job]:
            continue
        sizes = np.full(len(nodes), int(jobs.gpus_per_task[job]))
        if jobs.rest_gpus[job]:
            sizes[-1] = jobs.rest_gpus[job]
        pieces = zip(tree.spine[nodes], tree.leaf[nodes], nodes, sizes, strict=True)
        row = links[cluster.gpu_model[int(nodes[0])]]
        spread = spread_of((int(s), int(e), int(n), 0, int(g)) for s, e, n, g in pieces)
        # All-reduces in the wall time: what of it is communication, over what one takes here.
        slow = 1.0 if outcome.slow_ppm is None else outcome.slow_ppm[job] / PPM
        busy = float(jobs.run[job]) * (told[job][0] / 1000 + slow - 1)
        count = busy / allreduce_s(spread, row, message)
        up = 2 * (len(used) - 1) / len(used) * message * count
        _spread_out(
            sent, used, up, int(outcome.start[job]) - origin, int(outcome.end[job]) - origin
        )
    capacity = np.zeros(len(leaves))
    for node in range(len(cluster)):
        rate = links[cluster.gpu_model[node]].gb_s[3]
        capacity[tree.leaf[node]] += rate * int(cluster.gpus[node])
    return leaves, sent / HOUR_S / 1e9, capacity


def _spread_out(
    sent: NDArray[np.float64], leaves: Ints, amount: float, since: int, until: int
) -> None:
    """Adds the bytes evenly over the hours from `since` to `until`."""
    hours = np.arange(since // HOUR_S, -(-until // HOUR_S))
    inside = np.minimum(until, (hours + 1) * HOUR_S) - np.maximum(since, hours * HOUR_S)
    sent[np.ix_(leaves, hours)] += amount * inside / (until - since)
