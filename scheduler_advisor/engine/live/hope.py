"""What spares a pass the searches that cannot succeed.

A job that found no victims, though all who could be stopped for it were lifted off in thought,
finds none until room comes free that none of them held: a job as important as itself ends, one
that cannot be stopped ends, a node comes back. What ends by itself and could have been stopped
changes nothing: its room was counted already. And whoever needs more GPUs than are free or could
be freed at all need not look.
"""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.live.compiled import leaf
from scheduler_advisor.engine.live.queues import lendable
from scheduler_advisor.engine.live.tuples import (
    CLOCK,
    EPOCH,
    FREE,
    HOPE,
    Hope,
    Live,
    Terms,
)
from scheduler_advisor.engine.world import M_PREEMPTED, S_SIZE, Rules, World


@leaf
def add_freeable(w: World, live: Live, job: int, sign: int) -> None:
    hope = live.hope
    size = sign * w.shapes[w.rows.shape[job], S_SIZE]
    last = hope.freeable.shape[1] - 1
    rank = hope.rank[job]
    queue = live.tree.leaf[job]
    hope.freeable[queue, rank] += size
    hope.freeable[queue, last] += size
    hope.freeable[0, rank] += size
    hope.freeable[0, last] += size


@leaf
def count_stoppable(w: World, live: Live, terms: Terms, job: int) -> None:
    """The job runs from now: can somebody stop it?"""
    if terms.preempts == 0 or live.fate.stoppable[job] == 0:
        return
    if terms.max_per_job != 0 and w.runs.more[job, M_PREEMPTED] >= terms.max_per_job:
        return
    live.hope.counted[job] = 1
    add_freeable(w, live, job, 1)


@leaf
def uncount_stoppable(w: World, live: Live, job: int) -> None:
    if live.hope.counted[job] != 0:
        live.hope.counted[job] = 0
        add_freeable(w, live, job, -1)


@leaf
def grow_for_all(hope: Hope, z: Any) -> None:
    """Room may have come free for everybody."""
    z[CLOCK] += 1
    hope.grown[:] = z[CLOCK]


@leaf
def grow_by(w: World, live: Live, terms: Terms, z: Any, job: int, now: int) -> None:
    """The job leaves: more room than before for those who could not have stopped it."""
    hope = live.hope
    z[CLOCK] += 1
    young = terms.min_run != 0 and now - w.runs.start[job] <= terms.min_run
    last = len(hope.grown) - 1
    if hope.counted[job] != 0 and not young:
        last = hope.rank[job]
    for rank in range(last + 1):
        hope.grown[rank] = z[CLOCK]


@leaf
def looked_in_vain(live: Live, terms: Terms, job: int) -> bool:
    """Has the job looked in vain since room last came free that no victim could have made?"""
    hope = live.hope
    return terms.remembers != 0 and hope.vain[job] >= hope.grown[hope.rank[job]]


@leaf
def too_little(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, by_rank: int, reclaim: int
) -> bool:
    """Would the job lack GPUs even if all left that could be stopped for it?"""
    if terms.bounded == 0:
        return False
    freeable = live.hope.freeable
    own = live.tree.leaf[job]
    size = w.shapes[w.rows.shape[job], S_SIZE]
    short = size + rules.headroom_milli - z[FREE]
    if by_rank != 0:
        row = own if terms.own_queue != 0 else 0
        for rank in range(live.hope.rank[job] + terms.coarse):
            short -= freeable[row, rank]
    if short > 0 and reclaim != 0:
        last = freeable.shape[1] - 1
        for at in range(len(live.tree.rank)):
            queue = live.tree.rank[at]
            if queue == own or freeable[queue, last] == 0:
                continue
            over = lendable(live.tree, terms, own, queue, size)
            if over > 0:
                short -= min(over, freeable[queue, last])
                if short <= 0:
                    break
    return short > 0


@leaf
def nobody_can_start(w: World, live: Live, z: Any, part: int) -> bool:
    """Has every shape that waits failed since room last came free? Within a pass the answer only
    turns to yes, so that each shape is looked at once."""
    hope = live.hope
    at = z[HOPE]
    end = hope.start[part + 1]
    while at < end:
        shape = hope.shapes[at]
        if hope.waits[shape] > 0 and w.failed[shape, 0] != z[EPOCH]:
            break
        at += 1
    z[HOPE] = at
    return at >= end
