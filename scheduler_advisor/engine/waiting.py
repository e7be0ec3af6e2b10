"""Who is kept back by limits and reservations of their own, and who is let in by a parent's end."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.jit import kernel
from scheduler_advisor.engine.ranks import Ranks, insert
from scheduler_advisor.engine.world import COUNTED, Family, Held, Limits, Rows

MAX_MILLI, MAX_JOBS, MILLI, JOBS = 0, 1, 2, 3  # columns of Limits.table


@kernel
def held_back(
    held: Held,
    limits: Limits,
    rows: Rows,
    size: int,
    reserving: int,
    limiting: int,
    job: int,
    now: int,
) -> bool:
    """Kept from starting by its own limit or reservation; such a job blocks nobody."""
    if reserving != 0 and held.named[job] >= 0:
        window = held.window[held.named[job]]
        if now < window[0] or now > window[1] - rows.limit[job]:
            return True
    if limiting != 0:
        for k in range(limits.of_job.shape[1]):
            one = limits.of_job[job, k]
            if one < 0:
                break
            if one >= COUNTED:  # it raises the counter, and another limit binds it instead
                continue
            counter = limits.table[one]
            if counter[MILLI] + size > counter[MAX_MILLI] or counter[JOBS] >= counter[MAX_JOBS]:
                return True
    return False


@kernel
def count_in(limits: Limits, size: int, job: int, sign: int) -> None:
    """The job begins (+1) or ceases (-1) to count against its limits."""
    for k in range(limits.of_job.shape[1]):
        one = limits.of_job[job, k]
        if one < 0:
            break
        counter = one & (COUNTED - 1)
        limits.table[counter, MILLI] += sign * size
        limits.table[counter, JOBS] += sign


@kernel
def free_children(
    family: Family, rows: Rows, queue: Ranks, rank: Any, eligible: Any, job: int, now: int
) -> int:
    """Queues the children that waited for this job alone; returns how many."""
    queued = 0
    for at in range(family.child_start[job], family.child_start[job + 1]):
        child = family.children[at]
        family.waits_for[child] -= 1
        if rows.shape[child] < 0 or family.waits_for[child] != 0:
            continue
        if eligible[child] <= now:
            insert(queue, rank[child])
            queued += 1
    return queued
