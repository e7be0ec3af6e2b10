"""How a replay used the GPUs, in the ledger's words: held, and why the rest was not.

A finished schedule is replayed at sample instants; the driver loops stay free of it. The rule for
free GPUs is that of the ledger design, section 1: first what is away, reserved or kept as
headroom, then what a node's CPU and memory make unusable, then what pending jobs claim in queue
order; the rest is free. F is measured against the replayed jobs' own typical tasks.

Last attempts only: while a job that was stopped runs an earlier attempt it counts as waiting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine import ledger_walk as lw
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.counters import counters_of
from scheduler_advisor.engine.groups import grouped
from scheduler_advisor.engine.limits import OutageKind
from scheduler_advisor.engine.outcome import STATES, Outcome, State
from scheduler_advisor.engine.policy import Order
from scheduler_advisor.engine.prepare import order_bands
from scheduler_advisor.engine.scoring import (
    N_TOTAL,
    model_bits,
    node_models,
    typical_of,
    typical_table,
)

Ints = NDArray[np.int64]
WHOLE = 1000
NEVER = np.iinfo(np.int64).max

CLASSES = (
    "held",
    "failed",
    "drained",
    "reserved",
    "gang_wait",
    "stranded_cpu",
    "stranded_mem",
    "stranded_shape",
    "policy_blocked",
    "free",
)


@dataclass(frozen=True, slots=True)
class Samples:
    """`milli[k, c]`: thousandths of GPUs in class c of CLASSES at instant `at[k]`, after the pass;
    every row adds up to the cluster. `seconds[k]` is how long the sample stands for.
    `fragmentation_milli[k]`: F of the nodes that are there, in thousandths of GPUs."""

    at: Ints
    seconds: Ints
    milli: Ints
    queued: Ints
    demand_milli: Ints
    fragmentation_milli: NDArray[np.float64]

    def gpu_seconds(self) -> dict[str, float]:
        """Integral of each class over the window, in GPU-seconds."""
        sums = (self.milli * self.seconds[:, None]).sum(axis=0) / WHOLE
        return dict(zip(CLASSES, sums.tolist(), strict=True))

    def fragmentation_gpu_s(self) -> float:
        """Integral of F over the window, in GPU-seconds."""
        return float((self.fragmentation_milli * self.seconds).sum()) / WHOLE


def sample_ledger(outcome: Outcome, count: int = 1000) -> Samples:
    """The ledger's classes, the queue and F at `count` evenly spaced instants of the replay."""
    jobs = outcome.jobs
    low = int(jobs.submit.min(initial=0))
    high = max(outcome.last_instant, low + 1)
    at = np.unique(np.linspace(low, high - 1, count).astype(np.int64))
    size = len(at)
    milli = np.zeros((size, len(CLASSES)), np.int64)
    queued, demand, frag = (np.zeros(size, np.int64) for _ in range(3))
    walked = _walked(outcome)
    lw.walk(walked, at, milli, queued, demand, frag)
    total = max(1, int(walked.typical[-1, N_TOTAL]))
    return Samples(at, np.diff(np.append(at, high)), milli, queued, demand, frag / total)


def _walked(outcome: Outcome) -> lw.Walk:
    jobs, cluster = outcome.jobs, outcome.cluster
    groups = grouped(jobs, cluster)
    bits = model_bits(jobs, cluster)
    limits, _ = counters_of(jobs, cluster)
    gpu = outcome.place_gpu
    asks = jobs.gpus_per_task > 0
    per = np.maximum(jobs.gpus_per_task, 1)
    table = _job_table(outcome, groups.of_job)
    order = np.argsort(np.array(cluster.names, dtype=str), kind="stable")
    return lw.Walk(
        jobs=table,
        nodes=_node_table(cluster, groups.of_node, node_models(cluster, bits)),
        place=np.stack((outcome.place_node, np.zeros_like(outcome.place_node)), axis=1)
        if gpu is None
        else np.stack((outcome.place_node, gpu), axis=1),
        share=_shares(cluster, gpu is not None),
        turns=_turns(outcome, table),
        by_name=order.astype(np.int64),
        outages=_outages(cluster),
        windows=_windows(cluster),
        member=groups.member,
        limits=limits.table,
        of_job=limits.of_job,
        typical=typical_table(typical_of(jobs, bits), cluster),
        queue=np.zeros(len(jobs) + 1, np.int64),
        shares=int(gpu is not None),
        headroom=cluster.headroom_gpus * WHOLE,
        profile_cpu=_percentile((jobs.cpu_milli // per)[asks]),
        profile_mem=_percentile((jobs.mem_mib // per)[asks]),
    )


def _job_table(outcome: Outcome, of_class: Ints) -> Ints:
    jobs, done = outcome.jobs, outcome.state == STATES.index(State.DONE)
    table = np.zeros((len(jobs), lw.JOB_COLUMNS), np.int64)
    table[:, lw.J_START] = np.where(done, outcome.start, NEVER)
    table[:, lw.J_END] = np.where(done, outcome.end, NEVER)
    table[:, lw.J_ELIGIBLE] = jobs.eligible
    table[:, lw.J_PLACE] = outcome.place_start
    table[:, lw.J_TASKS] = jobs.tasks
    table[:, lw.J_GPU] = jobs.gpus_per_task
    table[:, lw.J_CPU] = jobs.cpu_milli
    table[:, lw.J_MEM] = jobs.mem_mib
    table[:, lw.J_MILLI] = jobs.gpu_milli
    table[:, lw.J_REST] = jobs.rest_gpus
    table[:, lw.J_EXCLUSIVE] = jobs.exclusive
    table[:, lw.J_CLASS] = of_class
    table[:, lw.J_ORDER] = _order(outcome)
    return table


def _order(outcome: Outcome) -> Ints:
    """Each job's place in the policy's order, where that is settled by the jobs alone."""
    jobs, order = outcome.jobs, np.arange(len(outcome.jobs))
    if outcome.policy.order is Order.FIFO and not outcome.cluster.partitions:
        return order
    place = np.empty(len(jobs), np.int64)
    place[np.lexsort((order, order_bands(jobs, outcome.cluster, outcome.policy)))] = order
    return place


def _turns(outcome: Outcome, table: Ints) -> Ints:
    """Jobs by start, by end, by arrival; then -1. Of one instant those of no length start first and
    end last, in the same order."""
    done = np.flatnonzero(outcome.state == STATES.index(State.DONE))
    there = np.flatnonzero(outcome.state != STATES.index(State.UNPLACEABLE))
    start, end = table[done, lw.J_START], table[done, lw.J_END]
    turns = np.full((3, len(table)), -1, np.int64)
    turns[0, : len(done)] = done[np.lexsort((start != end, start))]
    turns[1, : len(done)] = done[np.lexsort((start == end, end))]
    turns[2, : len(there)] = there[np.argsort(table[there, lw.J_ELIGIBLE], kind="stable")]
    return turns


def _node_table(cluster: Cluster, of_node: Ints, models: Ints) -> Ints:
    table = np.zeros((len(cluster), lw.NODE_COLUMNS), np.int64)
    amounts = (cluster.gpus * WHOLE, cluster.cpu_milli, cluster.mem_mib)
    for at, amount in enumerate(amounts):
        table[:, lw.N_FREE + at] = amount
        table[:, lw.N_ALL + at] = amount
    table[:, lw.N_GROUP] = of_node
    table[:, lw.N_MODEL] = models
    return table


def _shares(cluster: Cluster, told_apart: bool) -> Ints:
    most = max(1, int(cluster.gpus.max(initial=1)))
    there = np.arange(most)[None, :] < cluster.gpus[:, None]
    whole = np.where(there, WHOLE, 0).astype(np.int64)
    spare = np.zeros((1, most), np.int64)
    return np.concatenate((whole, spare)) if told_apart else spare


def _outages(cluster: Cluster) -> Ints:
    events = []
    for outage in cluster.outages:
        node = cluster.index[outage.node]
        kind = lw.OUT_FAIL if outage.kind is OutageKind.FAIL else lw.OUT_DRAIN
        events.append((outage.down_at, kind, node, 1))
        if outage.up_at is not None:
            events.append((outage.up_at, kind, node, -1))
    return np.array(sorted(events), np.int64).reshape(-1, 4)


def _windows(cluster: Cluster) -> Ints:
    table = np.zeros((len(cluster.reservations), 2 + len(cluster)), np.int64)
    for at, held in enumerate(cluster.reservations):
        table[at, :2] = held.start_at, held.end_at
        table[at, [2 + cluster.index[name] for name in held.nodes]] = 1
    return table


def _percentile(values: Ints) -> int:
    """CPU or memory per GPU at the 25th percentile: the ledger's demand profile."""
    return int(np.percentile(values, 25)) if len(values) else 0
