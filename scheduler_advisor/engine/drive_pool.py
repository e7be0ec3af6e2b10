"""The driver loop of conservative backfill on a pool of GPUs, where a plan is one row of steps.

It decides what `drive_planned` decides, with less to do:

- While nobody ends early the plan stays true, and what it says comes to pass.
- A plan made anew goes in queue order only as far as somebody behind might still start now: the
  last in the queue is asked first, and once what is planned shuts him out he is out for this plan.
- A longer job of the same size finds no room earlier than a shorter one did.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.drive import (
    EVENTS,
    EXAMINED,
    FREE,
    HELD,
    LAST,
    PASSES,
    QUEUED,
    WAITING,
)
from scheduler_advisor.engine.heap import JOB_BITS, JOB_MASK, pop, push
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.policy import Backfill, Policy
from scheduler_advisor.engine.ranks import NONE, insert, next_rank, remove
from scheduler_advisor.engine.steps import LATER, begin, finish
from scheduler_advisor.engine.steps_in_time import (
    Steps,
    begun,
    copy_steps,
    empty_steps,
    first_room,
    fits_now,
    give_back,
    take,
)
from scheduler_advisor.engine.world import S_SIZE, Rows, Rules, Runs, World

LENGTHS = 40  # powers of two that a job's length can lie between


class Pool(NamedTuple):
    """What is free beside those who run, and beside those who are planned too; the plan as a heap
    of start and rank; ranks of those who might start now; [shape, power of two] -> no earlier
    start, in which plan."""

    base: Steps
    plan: Steps
    starts: Any
    hopes: Any
    bounds: Any


def empty_pool(world: World, total_milli: int) -> Pool:
    """Nothing runs, nothing is planned."""
    size = len(world.rows.run)
    room = 2 * size + 8
    return Pool(
        empty_steps(room, total_milli),
        empty_steps(room, total_milli),
        np.zeros(size + 2, np.int64),
        np.zeros(size + 2, np.int64),
        np.zeros((len(world.shapes), LENGTHS, 2), np.int64),
    )


def suits(jobs: Jobs, cluster: Cluster, policy: Policy, rules: Rules) -> bool:
    """One node, of which jobs ask for GPUs alone, and nothing but their ends changes a plan."""
    return bool(
        policy.backfill is Backfill.CONSERVATIVE
        and len(cluster) == 1
        and rules.components == 1
        and not (policy.backfill_depth or policy.backfill_max_limit_s)
        and not (cluster.outages or rules.limits or rules.reservations)
        and not (rules.interruptible or rules.shares or rules.dependencies)
        and not (jobs.cpu_milli.any() or jobs.mem_mib.any() or jobs.exclusive.any())
    )


@leaf
def length_of(rows: Rows, job: int) -> int:
    """How long the plan keeps room for the job: at least a second."""
    return max(1, max(rows.run[job], rows.limit[job]))


@leaf
def power(length: int) -> int:
    """The power of two at or below `length`, at most LENGTHS - 1."""
    found = 0
    while length > 1 and found < LENGTHS - 1:
        length >>= 1
        found += 1
    return found


@leaf
def planned_start(
    p: Pool, count: int, shape: int, size: int, length: int, now: int, plan: int
) -> int:
    """When the job of that shape and length will find room, none of the others being moved."""
    bucket = power(length)
    since = now
    if p.bounds[shape, bucket, 1] == plan:
        since = max(now, p.bounds[shape, bucket, 0])
    start = first_room(p.plan, 0, count, since, length, size)
    for longer in range(bucket + 1, LENGTHS):
        if p.bounds[shape, longer, 1] == plan and p.bounds[shape, longer, 0] >= start:
            break
        p.bounds[shape, longer, 1] = plan
        p.bounds[shape, longer, 0] = start
    return start


@leaf
def still_hopes(w: World, p: Pool, hopes: int, planned: int, count: int, now: int) -> int:
    """How many hopes are left when those at the end who cannot start now are given up."""
    while hopes > 0:
        rank = p.hopes[hopes - 1]
        if rank <= planned:
            return 0
        job = w.at_rank[rank]
        size = w.shapes[w.rows.shape[job], S_SIZE]
        if fits_now(p.plan, 0, count, now + length_of(w.rows, job), size):
            break
        hopes -= 1
    return hopes


@leaf
def all_hope(w: World, p: Pool, planned: int, free: int) -> int:
    """Everybody behind the last who is planned, if he is small enough; returns how many."""
    hopes = 0
    rank = next_rank(w.queue, planned + 1)
    while rank != NONE:
        if w.shapes[w.rows.shape[w.at_rank[rank]], S_SIZE] <= free:
            p.hopes[hopes] = rank
            hopes += 1
        rank = next_rank(w.queue, rank + 1)
    return hopes


@leaf
def until_of(rows: Rows, runs: Runs, job: int) -> int:
    """Until when a running job is booked."""
    return runs.start[job] + length_of(rows, job)


@kernel
def drive_pool(w: World, p: Pool, smallest: int, totals: Any) -> None:
    """Replays all jobs; see the module."""
    rows, runs, shapes = w.rows, w.runs, w.shapes
    jobs = len(w.arrival)
    now = -(1 << 60)
    free = totals[FREE]
    total = free
    arrived = events = passes = examined = waiting = ends = 0
    held_sum = queue_sum = 0
    low = 0
    base = 1
    plan = 0  # the number of the plan
    count = 0  # steps of the plan
    starts = 0
    planned = -1  # everybody in the queue up to this rank has a place in the plan
    true = False  # the plan still is what would be planned now
    full = True  # whoever waits may hope
    next_arrival = w.eligible[w.arrival[0]] if jobs > 0 else LATER
    while True:
        at = next_arrival
        if ends > 0:
            at = min(at, w.ends[0] >> JOB_BITS)
        if at == LATER:
            break
        at = max(at, now)
        held_sum += (total - free) * (at - now)
        queue_sum += waiting * (at - now)
        now = at
        low = begun(p.base, low, base, now)
        while ends > 0 and w.ends[0] >> JOB_BITS <= now:
            job = w.ends[0] & JOB_MASK
            ends = pop(w.ends, ends)
            size = shapes[rows.shape[job], S_SIZE]
            free += size
            until = until_of(rows, runs, job)
            if until > now:
                base = give_back(p.base, low, base, now, until, size)
                true = False
            finish(rows, runs, 0, job)
            events += 1
            full = True
        hopes = 0
        while next_arrival <= now:
            job = w.arrival[arrived]
            arrived += 1
            next_arrival = w.eligible[w.arrival[arrived]] if arrived < jobs else LATER
            events += 1
            rank = w.rank[job]
            insert(w.queue, rank)
            waiting += 1
            true = true and rank > planned
            p.hopes[hopes] = rank
            hopes += 1
        if waiting == 0 or free < smallest:
            continue
        passes += 1
        if not true:
            low, base = 0, copy_steps(p.base, p.base, low, base)
            count = copy_steps(p.plan, p.base, 0, base)
            plan += 1
            planned = -1
            starts = 0
            true = True
            full = True
        else:
            gone = begun(p.plan, 0, count, now)
            if gone > 0:
                count = copy_steps(p.plan, p.plan, gone, count)
        started = 0
        while starts > 0 and p.starts[0] >> JOB_BITS <= now:
            w.scratch[started] = p.starts[0] & JOB_MASK
            started += 1
            starts = pop(p.starts, starts)
        at = 0
        if not full:
            # Only those who have come may hope; they came in order of time, not of rank.
            for one in range(1, hopes):
                rank = p.hopes[one]
                slot = one
                while slot > 0 and p.hopes[slot - 1] > rank:
                    p.hopes[slot] = p.hopes[slot - 1]
                    slot -= 1
                p.hopes[slot] = rank
        else:
            hopes = -1
        while True:
            # First those whose time has come, then the rest of the queue as far as somebody hopes.
            if at < started:
                rank = w.scratch[at]
                at += 1
                start = now
                length = length_of(rows, w.at_rank[rank])
            else:
                if hopes < 0:
                    hopes = all_hope(w, p, planned, free)
                hopes = still_hopes(w, p, hopes, planned, count, now)
                if hopes == 0:
                    break
                rank = next_rank(w.queue, planned + 1)
                planned = rank
                job = w.at_rank[rank]
                size = shapes[rows.shape[job], S_SIZE]
                length = length_of(rows, job)
                examined += 1
                start = planned_start(p, count, rows.shape[job], size, length, now, plan)
                count = take(p.plan, 0, count, start, start + length, size)
                if start != now:
                    starts = push(p.starts, starts, (start << JOB_BITS) | rank)
                    continue
            job = w.at_rank[rank]
            size = shapes[rows.shape[job], S_SIZE]
            base = take(p.base, low, base, now, now + length, size)
            ends = push(w.ends, ends, (begin(rows, runs, 0, job, now) << JOB_BITS) | job)
            free -= size
            remove(w.queue, rank)
            waiting -= 1
        full = False
    totals[FREE] = free
    totals[EVENTS] = events
    totals[PASSES] = passes
    totals[HELD] = held_sum
    totals[QUEUED] = queue_sum
    totals[WAITING] = waiting
    totals[LAST] = now
    totals[EXAMINED] = examined
