"""Stopping jobs of lower priority for one that cannot start: the first of the preemption parts."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.heap import JOB_MASK
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.outside import interrupt
from scheduler_advisor.engine.place import move_job
from scheduler_advisor.engine.placing import place_general
from scheduler_advisor.engine.steps import milli_held, stale
from scheduler_advisor.engine.world import (
    M_PREEMPTED,
    M_PREEMPTIBLE,
    M_PRIORITY,
    S_CLASS,
    S_SIZE,
    Book,
    Buckets,
    Classes,
    Held,
    Limits,
    Nodes,
    Rows,
    Rules,
    Runs,
    Shadow,
)


@leaf
def comes_before(runs: Runs, one: int, other: int) -> bool:
    """Lower priority first, then the youngest, then the highest index."""
    if runs.more[one, M_PRIORITY] != runs.more[other, M_PRIORITY]:
        return runs.more[one, M_PRIORITY] < runs.more[other, M_PRIORITY]
    if runs.start[one] != runs.start[other]:
        return runs.start[one] > runs.start[other]
    return one > other


@kernel
def candidates(
    shapes: Any, rows: Rows, runs: Runs, component: Any, ends: Any, size: int, job: int, found: Any
) -> int:
    """Running jobs that may be stopped for `job`, in the order in which they would be."""
    mine = component[shapes[rows.shape[job], S_CLASS]]
    count = 0
    for at in range(size):
        other = ends[at] & JOB_MASK
        if (
            stale(runs, ends[at])
            or runs.more[other, M_PREEMPTIBLE] == 0
            or runs.more[other, M_PRIORITY] >= runs.more[job, M_PRIORITY]
            or component[shapes[rows.shape[other], S_CLASS]] != mine
        ):
            continue
        again = False
        for before in range(count):
            again = again or found[before] == other
        if again:
            continue
        place_at = count
        while place_at > 0 and comes_before(runs, other, found[place_at - 1]):
            found[place_at] = found[place_at - 1]
            place_at -= 1
        found[place_at] = other
        count += 1
    return count


@kernel
def make_room(
    nodes: Nodes,
    buckets: Buckets,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rows: Rows,
    runs: Runs,
    book: Book,
    limits: Limits,
    rules: Rules,
    component: Any,
    ends: Any,
    size: int,
    chosen: Any,
    job: int,
    now: int,
    free_milli: int,
    stamp: int,
) -> tuple[int, int, int]:
    """Stops as few victims as this order needs so that the job fits: returns how many (they are
    in `chosen`), and by how much free and held milli-GPUs change; 0 if it cannot be.

    Victims are lifted off until the job fits; then, last one first, each goes back if the job
    fits all the same."""
    count = candidates(shapes, rows, runs, component, ends, size, job, chosen)
    most, shares, plain = rules.most, rules.shares, rules.plain_sizes
    asked = shapes[rows.shape[job], S_SIZE] + rules.headroom_milli
    lifted = 0
    gained = 0
    fits = 0
    at = 0
    while True:
        # at: the victim lifted last while growing (lifted == at), put back on trial afterwards.
        if fits == 0 and lifted == at:
            if lifted == count:
                break
            gained += milli_held(nodes, shapes, rows, book, plain, chosen[at], 1)
            move_job(nodes, buckets, shapes, rows, book, most, shares, chosen[at], 1)
            lifted += 1
            at += 1
        else:
            at -= 1
            if at < 0:
                break
            move_job(nodes, buckets, shapes, rows, book, most, shares, chosen[at], -1)
            gained -= milli_held(nodes, shapes, rows, book, plain, chosen[at], 1)
        stamp += 1
        trial = 0
        if free_milli + gained >= asked:
            trial = place_general(
                nodes, buckets, shadow, shapes, classes, held, rows, runs, book, rules, job, now,
                stamp, 0,
            )  # fmt: skip
        if trial == 1:
            move_job(nodes, buckets, shapes, rows, book, most, shares, job, 1)
        if fits == 1:
            if trial == 1:
                chosen[at] = -1
            else:
                gained += milli_held(nodes, shapes, rows, book, plain, chosen[at], 1)
                move_job(nodes, buckets, shapes, rows, book, most, shares, chosen[at], 1)
        elif trial == 1:
            fits = 1
    kept = 0
    freed = 0
    for at in range(lifted):
        victim = chosen[at]
        if victim < 0:
            continue
        move_job(nodes, buckets, shapes, rows, book, most, shares, victim, -1)
        if fits == 1:
            freed -= milli_held(nodes, shapes, rows, book, plain, victim, 0)
            interrupt(nodes, buckets, shapes, rows, runs, book, limits, rules, victim, now)
            runs.more[victim, M_PREEMPTED] += 1
            chosen[kept] = victim
            kept += 1
    if fits == 0:
        return 0, 0, 0
    return kept, gained, freed
