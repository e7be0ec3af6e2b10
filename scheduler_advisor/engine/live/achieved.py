"""What an attempt that is stopped has achieved, lost and spent."""

from __future__ import annotations

from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.live.tuples import Fate
from scheduler_advisor.engine.steps import restore_of, writes_of
from scheduler_advisor.engine.world import (
    M_EVERY,
    M_LEFT,
    M_LOST,
    M_OVERHEAD,
    M_WRITE,
    Rows,
    Runs,
)

REQUEUE, SCRATCH, CHECKPOINT, SUSPEND = range(4)  # Terms.mode


@kernel
def progress(rows: Rows, runs: Runs, job: int, now: int) -> tuple[int, int]:
    """Seconds of work saved by checkpoints of this attempt, and done in it."""
    more = runs.more
    worked = max(0, now - runs.start[job] - restore_of(more, rows.run, job))
    every = more[job, M_EVERY]
    if every == 0:
        return 0, worked
    cycle = every + more[job, M_WRITE]
    writes = writes_of(more, job)
    cycles = min(writes, worked // cycle)
    saved = cycles * every
    since = worked - cycles * cycle
    return saved, saved + (since if cycles == writes else min(since, every))


@kernel
def settle(rows: Rows, runs: Runs, fate: Fate, mode: int, job: int, now: int) -> None:
    """The attempt stops at `now`. What only its memory, or a checkpoint that is still to be
    written, keeps of it is at stake from now."""
    more = runs.more
    saved, done = progress(rows, runs, job, now)
    more[job, M_OVERHEAD] += now - runs.start[job] - done
    runs.end[job] = now
    if mode == SCRATCH:
        more[job, M_LOST] += done + rows.run[job] - more[job, M_LEFT]
        more[job, M_LEFT] = rows.run[job]
        return
    if saved > 0:
        fate.stake[job] = 0  # a checkpoint since then covers it
    fate.stake[job] += done - saved
    more[job, M_LEFT] -= done
    if mode == REQUEUE:
        lose_stake(runs, fate, job)


@leaf
def lose_stake(runs: Runs, fate: Fate, job: int) -> None:
    """What was not on storage is gone."""
    runs.more[job, M_LOST] += fate.stake[job]
    runs.more[job, M_LEFT] += fate.stake[job]
    fate.stake[job] = 0
