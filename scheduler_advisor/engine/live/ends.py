"""Heaps of instants: when attempts end, are believed to end, and when a timer rings."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.heap import JOB_BITS, JOB_MASK, push
from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.live.order import attained, level_of
from scheduler_advisor.engine.live.tuples import (
    BELIEVED,
    CLAIMS,
    ENDS,
    EVICTED,
    LEAVES,
    PLAIN,
    RUNNING,
    TIMERS,
    Live,
    Terms,
)
from scheduler_advisor.engine.steps import believed_end, swept
from scheduler_advisor.engine.world import RUNS, S_SIZE, Runs, World


@leaf
def dead(runs: Runs, live: Live, packed: int, job: int) -> bool:
    """Does the entry of the heap of ends belong to an attempt that is over?"""
    kind = live.fate.kind[job]
    going = (runs.phase[job] == RUNS and kind != CLAIMS) or (
        runs.phase[job] == LEAVES and kind == EVICTED
    )
    return not going or runs.end[job] != packed >> JOB_BITS


@kernel
def swept_ends(runs: Runs, live: Live, heap: Any, size: int) -> int:
    """The heap of ends without those of attempts that are over; returns the new size."""
    kept = 0
    for at in range(size):
        packed = heap[at]
        if not dead(runs, live, packed, packed & JOB_MASK):
            kept = push(heap, kept, packed)
    return kept


@leaf
def push_end(w: World, live: Live, z: Any, job: int, end: int) -> None:
    if z[ENDS] + 1 >= len(live.ends):
        z[ENDS] = swept_ends(w.runs, live, live.ends, z[ENDS])
    z[ENDS] = push(live.ends, z[ENDS], (end << JOB_BITS) | job)


@leaf
def push_believed(w: World, live: Live, z: Any, job: int) -> None:
    size = z[BELIEVED]
    if size + 1 >= len(live.believed) or size > 4 * z[RUNNING] + 64:
        size = swept(w.rows, w.runs, live.believed, size, 1)
    packed = (believed_end(w.rows, w.runs, job) << JOB_BITS) | job
    z[BELIEVED] = push(live.believed, size, packed)


@leaf
def rings(w: World, live: Live, terms: Terms, packed: int) -> bool:
    """Is the timer still meant: a minimum run time reached, a level of service passed?"""
    job = packed & JOB_MASK
    at = packed >> JOB_BITS
    if w.runs.phase[job] != RUNS or live.fate.kind[job] != PLAIN:
        return False
    if terms.min_run != 0 and w.runs.start[job] + terms.min_run == at:
        return True
    if terms.has_levels == 0:
        return False
    size = w.shapes[w.rows.shape[job], S_SIZE]
    now = level_of(live.levels, attained(w.rows, w.runs, size, job, at))
    return now != level_of(live.levels, attained(w.rows, w.runs, size, job, at - 1))


@kernel
def swept_timers(w: World, live: Live, terms: Terms, size: int) -> int:
    """The timers that are still meant; returns how many."""
    kept = 0
    for at in range(size):
        packed = live.timers[at]
        if rings(w, live, terms, packed):
            kept = push(live.timers, kept, packed)
    return kept


@kernel
def push_timers(w: World, live: Live, terms: Terms, z: Any, job: int, now: int) -> None:
    """When something about the running job changes, though nothing ends."""
    end = w.runs.end[job]
    if z[TIMERS] + 2 >= len(live.timers):
        z[TIMERS] = swept_timers(w, live, terms, z[TIMERS])
    if terms.min_run != 0 and live.fate.stoppable[job] != 0 and now + terms.min_run < end:
        when = now + terms.min_run
        if w.runs.start[job] == now:
            z[TIMERS] = push(live.timers, z[TIMERS], (when << JOB_BITS) | job)
    size = w.shapes[w.rows.shape[job], S_SIZE]
    if terms.has_levels != 0 and size > 0:
        service = attained(w.rows, w.runs, size, job, now)
        for at in range(len(live.levels)):
            if live.levels[at] > service:
                when = now + -(-(live.levels[at] - service) // size)
                if when < end:
                    z[TIMERS] = push(live.timers, z[TIMERS], (when << JOB_BITS) | job)
                break
