"""How a replay used the GPUs, in the ledger's words: held, and why the rest was not.

A finished schedule is replayed at sample instants; the driver loop stays free of it. The rule for
free GPUs is that of the ledger design, section 1: first what a node's CPU and memory make
unusable, then what pending jobs claim in queue order, the rest is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.jit import kernel
from scheduler_advisor.engine.outcome import STATES, Outcome, State

Ints = NDArray[np.int64]

CLASSES = (
    "held",
    "failed",
    "gang_wait",
    "stranded_cpu",
    "stranded_mem",
    "stranded_shape",
    "policy_blocked",
    "free",
)
HELD, FAILED, GANG_WAIT, NO_CPU, NO_MEM, SHAPE, BLOCKED, FREE = range(8)


@dataclass(frozen=True, slots=True)
class Samples:
    """`milli[k, c]`: thousandths of GPUs in class c of CLASSES at instant `at[k]`, after the pass;
    every row adds up to the cluster. `seconds[k]` is how long the sample stands for."""

    at: Ints
    seconds: Ints
    milli: Ints
    queued: Ints
    demand_milli: Ints

    def gpu_seconds(self) -> dict[str, float]:
        """Integral of each class over the window, in GPU-seconds."""
        sums = (self.milli * self.seconds[:, None]).sum(axis=0) / 1000
        return dict(zip(CLASSES, sums.tolist(), strict=True))


@kernel
def _walk(
    at: Any,
    order: Any,
    start: Any,
    end: Any,
    eligible: Any,
    by_start: Any,
    by_end: Any,
    by_arrival: Any,
    place: Any,
    node_of: Any,
    tasks: Any,
    gpu: Any,
    cpu: Any,
    mem: Any,
    milli: Any,
    rest: Any,
    exclusive: Any,
    total: Any,
    free: Any,
    profile_cpu: Any,
    profile_mem: Any,
    queue: Any,
    claimed: Any,
    out: Any,
    queued: Any,
    demand: Any,
) -> None:
    """Moves jobs on and off the nodes in order of time; at each sample sorts the free GPUs."""
    jobs = len(by_arrival)
    started = 0
    ended = 0
    came = 0
    waiting = 0
    for sample in range(len(at)):
        now = at[sample]
        while started < len(by_start) and start[by_start[started]] <= now:
            _move(by_start[started], -1, place, node_of, tasks, gpu, cpu, mem, milli, rest,
                  exclusive, total, free)  # fmt: skip
            started += 1
        while ended < len(by_end) and end[by_end[ended]] <= now:
            _move(by_end[ended], 1, place, node_of, tasks, gpu, cpu, mem, milli, rest,
                  exclusive, total, free)  # fmt: skip
            ended += 1
        while came < jobs and eligible[by_arrival[came]] <= now:
            job = by_arrival[came]
            came += 1
            if start[job] > now:
                slot = waiting
                while slot > 0 and order[queue[slot - 1]] > order[job]:
                    queue[slot] = queue[slot - 1]
                    slot -= 1
                queue[slot] = job
                waiting += 1
        kept = 0
        for slot in range(waiting):
            if start[queue[slot]] > now:
                queue[kept] = queue[slot]
                kept += 1
        waiting = kept
        queued[sample] = waiting
        _sort_free(
            sample, queue, waiting, tasks, gpu, cpu, mem, milli, rest, total, free, profile_cpu,
            profile_mem, claimed, out, demand,
        )  # fmt: skip


@kernel
def _move(
    job: int,
    sign: int,
    place: Any,
    node_of: Any,
    tasks: Any,
    gpu: Any,
    cpu: Any,
    mem: Any,
    milli: Any,
    rest: Any,
    exclusive: Any,
    total: Any,
    free: Any,
) -> None:
    for task in range(tasks[job] + (1 if rest[job] != 0 else 0)):
        node = node_of[place[job] + task]
        if exclusive[job] != 0:
            for column in range(3):
                free[node, column] = total[node, column] if sign > 0 else 0
            continue
        last = task == tasks[job]
        size = rest[job] * 1000 if last else gpu[job] * 1000 + milli[job]
        share_cpu = -(-cpu[job] * rest[job] // max(gpu[job], 1)) if last else cpu[job]
        share_mem = -(-mem[job] * rest[job] // max(gpu[job], 1)) if last else mem[job]
        free[node, 0] += sign * size
        free[node, 1] += sign * share_cpu
        free[node, 2] += sign * share_mem


@kernel
def _sort_free(
    sample: int,
    queue: Any,
    waiting: int,
    tasks: Any,
    gpu: Any,
    cpu: Any,
    mem: Any,
    milli: Any,
    rest: Any,
    total: Any,
    free: Any,
    profile_cpu: int,
    profile_mem: int,
    claimed: Any,
    out: Any,
    demand: Any,
) -> None:
    """One instant: `claimed` becomes the usable milli-GPUs of each node that nobody claims."""
    left = 0
    for node in range(len(total)):
        room = free[node, 0]
        out[sample, 0] += total[node, 0] - room
        by_cpu = room if profile_cpu == 0 else 1000 * (free[node, 1] // profile_cpu)
        by_mem = room if profile_mem == 0 else 1000 * (free[node, 2] // profile_mem)
        usable = min(room, min(by_cpu, by_mem))
        out[sample, 3 if by_cpu <= by_mem else 4] += room - usable
        claimed[node] = usable
        left += usable
    for slot in range(waiting):
        job = queue[slot]
        need = gpu[job] * 1000 + milli[job]
        want = tasks[job] * need + rest[job] * 1000
        demand[sample] += want
        if left <= 0 or want == 0:
            continue
        fits = 0
        by_gpu = 0
        for node in range(len(total)):
            times = claimed[node] // need
            by_gpu += times
            if cpu[job] > 0:
                times = min(times, free[node, 1] // cpu[job])
            if mem[job] > 0:
                times = min(times, free[node, 2] // mem[job])
            fits += times
        kind = 2
        if fits >= tasks[job] + (1 if rest[job] != 0 else 0):
            kind = 6
        elif by_gpu >= tasks[job] + (1 if rest[job] != 0 else 0):
            kind = 3 if cpu[job] > 0 else 4
        elif left >= want:
            kind = 5
        taken = min(want, left)
        out[sample, kind] += taken
        left -= taken
        # Claimed in ascending order of what is free on the node, then of the node.
        while taken > 0:
            least = -1
            for node in range(len(total)):
                if claimed[node] > 0 and (least < 0 or claimed[node] < claimed[least]):
                    least = node
            part = min(taken, claimed[least])
            claimed[least] -= part
            taken -= part
    out[sample, 7] += left


def sample_ledger(outcome: Outcome, count: int = 1000) -> Samples:
    """The ledger's classes at `count` evenly spaced instants of the replay. Uses last attempts
    only, and jobs that are done; outages and shares of GPUs count as whole time on the node."""
    jobs, cluster = outcome.jobs, outcome.cluster
    done = np.flatnonzero(outcome.state == STATES.index(State.DONE))
    never = np.iinfo(np.int64).max
    start = np.full(len(jobs), never, np.int64)
    end = start.copy()
    start[done], end[done] = outcome.start[done], outcome.end[done]
    placeable = np.flatnonzero(outcome.state != STATES.index(State.UNPLACEABLE))
    low = int(jobs.submit.min(initial=0))
    high = max(outcome.last_instant, low + 1)
    at = np.unique(np.linspace(low, high - 1, count).astype(np.int64))
    total = np.stack((cluster.gpus * 1000, cluster.cpu_milli, cluster.mem_mib), axis=1)
    asks = jobs.gpus_per_task > 0
    per = np.maximum(jobs.gpus_per_task, 1)
    out = np.zeros((len(at), len(CLASSES)), np.int64)
    queued, demand = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    _walk(
        at,
        np.arange(len(jobs)),
        start,
        end,
        jobs.eligible,
        done[np.argsort(start[done], kind="stable")],
        done[np.argsort(end[done], kind="stable")],
        placeable[np.argsort(jobs.eligible[placeable], kind="stable")],
        outcome.place_start,
        outcome.place_node,
        jobs.tasks,
        jobs.gpus_per_task,
        jobs.cpu_milli,
        jobs.mem_mib,
        jobs.gpu_milli,
        jobs.rest_gpus,
        jobs.exclusive,
        total,
        total.copy(),
        _percentile((jobs.cpu_milli // per)[asks]),
        _percentile((jobs.mem_mib // per)[asks]),
        np.zeros(len(jobs) + 1, np.int64),
        np.zeros(len(cluster), np.int64),
        out,
        queued,
        demand,
    )
    seconds = np.diff(np.append(at, high))
    return Samples(at, seconds, out, queued, demand)


def _percentile(values: Ints) -> int:
    """CPU or memory per GPU at the 25th percentile: the ledger's demand profile."""
    return int(np.percentile(values, 25)) if len(values) else 0
