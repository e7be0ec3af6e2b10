"""What every driver does: how long an attempt lasts, what it holds, beginning and ending it."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.heap import JOB_BITS, JOB_MASK, push
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.place import tasks_of
from scheduler_advisor.engine.world import (
    ALL_GPU,
    DOWN,
    EXCLUSIVE,
    M_EVERY,
    M_FIRST,
    M_LEFT,
    M_LOST,
    M_OVERHEAD,
    M_RESTORE,
    M_STARTS,
    M_WRITE,
    OVER,
    RUNS,
    S_FLAGS,
    S_GPU,
    S_MILLI,
    S_REST_GPU,
    S_SIZE,
    S_TASKS,
    WAITS,
    WHOLE,
    Book,
    Nodes,
    Rows,
    Runs,
)

LATER = 1 << 62  # no such instant


@leaf
def writes_of(more: Any, job: int) -> int:
    """Checkpoints written while the rest of the job is done; none at its very end."""
    if more[job, M_EVERY] == 0 or more[job, M_LEFT] == 0:
        return 0
    return (more[job, M_LEFT] - 1) // more[job, M_EVERY]


@leaf
def restore_of(more: Any, run: Any, job: int) -> int:
    """Paid only where a checkpoint has kept something."""
    return more[job, M_RESTORE] if more[job, M_LEFT] < run[job] else 0


@leaf
def wall_of(rows: Rows, runs: Runs, interruptible: int, job: int) -> int:
    """Seconds from the start of this attempt to its end, if nothing stops it."""
    if interruptible == 0:
        return rows.run[job]
    return (
        restore_of(runs.more, rows.run, job)
        + runs.more[job, M_LEFT]
        + writes_of(runs.more, job) * runs.more[job, M_WRITE]
    )


@leaf
def believed_end(rows: Rows, runs: Runs, job: int) -> int:
    """When the scheduler thinks that the running job will have ended."""
    return max(runs.end[job], runs.start[job] + rows.limit[job])


@leaf
def begin(rows: Rows, runs: Runs, interruptible: int, job: int, now: int) -> int:
    """The job's tasks are placed: it runs from now; returns when it ends."""
    end = now + wall_of(rows, runs, interruptible, job)
    if interruptible != 0:
        if runs.more[job, M_STARTS] == 0:
            runs.more[job, M_FIRST] = now
        runs.more[job, M_STARTS] += 1
    runs.start[job] = now
    runs.end[job] = end
    runs.phase[job] = RUNS
    return end


@leaf
def finish(rows: Rows, runs: Runs, interruptible: int, job: int) -> None:
    """The attempt came to its end."""
    runs.phase[job] = OVER
    if interruptible != 0:
        runs.more[job, M_OVERHEAD] += (
            restore_of(runs.more, rows.run, job)
            + writes_of(runs.more, job) * runs.more[job, M_WRITE]
        )
        runs.more[job, M_LEFT] = 0


@kernel
def settle_interruption(rows: Rows, runs: Runs, job: int, now: int) -> None:
    """The attempt was stopped at `now`: what its last checkpoint kept is done, the work since is
    lost, writing and restoring was overhead."""
    more = runs.more
    elapsed = now - runs.start[job]
    worked = max(0, elapsed - restore_of(more, rows.run, job))
    every = more[job, M_EVERY]
    saved = 0
    done = worked
    if every != 0:
        cycle = every + more[job, M_WRITE]
        writes = writes_of(more, job)
        cycles = min(writes, worked // cycle)
        saved = cycles * every
        since = worked - cycles * cycle
        done = saved + (since if cycles == writes else min(since, every))
    more[job, M_LOST] += done - saved
    more[job, M_OVERHEAD] += elapsed - done
    more[job, M_LEFT] -= saved
    runs.end[job] = now
    runs.phase[job] = WAITS


@leaf
def milli_held(
    nodes: Nodes, shapes: Any, rows: Rows, book: Book, plain_sizes: int, job: int, only_up: int
) -> int:
    """Thousandths of GPUs that the job holds; with `only_up`, those on nodes that take tasks."""
    if plain_sizes != 0:
        return shapes[rows.shape[job], S_SIZE]
    return _milli_held(nodes, shapes, rows, book, job, only_up)


@kernel
def _milli_held(nodes: Nodes, shapes: Any, rows: Rows, book: Book, job: int, only_up: int) -> int:
    shape = rows.shape[job]
    total = 0
    for task in range(tasks_of(shapes, shape)):
        node = book.node[rows.place[job] + task]
        if only_up != 0 and nodes.table[node, DOWN] != 0:
            continue
        if shapes[shape, S_FLAGS] & EXCLUSIVE:
            total += nodes.table[node, ALL_GPU] * WHOLE
        elif task == shapes[shape, S_TASKS]:
            total += shapes[shape, S_REST_GPU] * WHOLE
        else:
            total += shapes[shape, S_GPU] * WHOLE + shapes[shape, S_MILLI]
    return total


@leaf
def stale(runs: Runs, packed: int) -> bool:
    """Does the entry of the heap of ends belong to an attempt that is over?"""
    job = packed & JOB_MASK
    return runs.phase[job] != RUNS or runs.end[job] != packed >> JOB_BITS


@kernel
def swept(rows: Rows, runs: Runs, heap: Any, size: int, is_believed: int) -> int:
    """The heap without entries of attempts that are over; returns the new size."""
    kept = 0
    for at in range(size):
        packed = heap[at]
        job = packed & JOB_MASK
        end = believed_end(rows, runs, job) if is_believed != 0 else runs.end[job]
        if runs.phase[job] == RUNS and end == packed >> JOB_BITS:
            kept = push(heap, kept, packed)
    return kept
