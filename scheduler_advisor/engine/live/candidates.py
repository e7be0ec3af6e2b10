"""Who may be stopped for a job, and in which order: by rank within reach, and to get back what is
lent."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.live.achieved import SCRATCH, progress
from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.live.order import standing
from scheduler_advisor.engine.live.queues import lendable
from scheduler_advisor.engine.live.tuples import (
    NONE,
    NOW,
    PLAIN,
    RUNNING,
    Live,
    Terms,
)
from scheduler_advisor.engine.world import M_LEFT, M_PREEMPTED, RUNS, S_CLASS, S_SIZE, World

LOWEST_PRIORITY, YOUNGEST, LEAST_LOST = range(3)  # Terms.victims


@kernel
def weight_of(w: World, live: Live, terms: Terms, job: int, now: int) -> int:
    """What the order of victims goes by first."""
    if terms.victims == LOWEST_PRIORITY:
        return standing(w, live, terms, job, now)
    if terms.victims == YOUNGEST or terms.mode > SCRATCH:
        return 0
    saved, done = progress(w.rows, w.runs, job, now)
    lost = done - saved
    if terms.mode == SCRATCH:
        lost = done + w.rows.run[job] - w.runs.more[job, M_LEFT]
    return lost * w.shapes[w.rows.shape[job], S_SIZE]


@leaf
def goes_first(w: World, live: Live, terms: Terms, one: int, other: int, now: int) -> bool:
    """Is `one` stopped before `other`?"""
    crowd = live.crowd
    if crowd.group[one] != crowd.group[other]:
        return crowd.group[one] < crowd.group[other]
    if crowd.weigh[one] != crowd.weigh[other]:
        return crowd.weigh[one] < crowd.weigh[other]
    if terms.victims == LEAST_LOST:
        mine = standing(w, live, terms, one, now)
        theirs = standing(w, live, terms, other, now)
        if mine != theirs:
            return mine < theirs
    if w.runs.start[one] != w.runs.start[other]:
        return w.runs.start[one] > w.runs.start[other]
    return one > other


@leaf
def sift(w: World, live: Live, terms: Terms, size: int, at: int, now: int) -> None:
    """Lets the candidate at `at` sink to its place in the heap."""
    found = live.crowd.found
    job = found[at]
    down = 2 * at + 1
    while down < size:
        if down + 1 < size and goes_first(w, live, terms, found[down + 1], found[down], now):
            down += 1
        if not goes_first(w, live, terms, found[down], job, now):
            break
        found[at] = found[down]
        at = down
        down = 2 * at + 1
    found[at] = job


@leaf
def can_be_stopped(w: World, live: Live, terms: Terms, job: int, other: int, now: int) -> bool:
    """Does anything but rank and queue forbid to stop `other` for `job`?"""
    fate = live.fate
    if fate.stoppable[other] == 0 or w.runs.phase[other] != RUNS or fate.kind[other] != PLAIN:
        return False
    if now - w.runs.start[other] < terms.min_run:
        return False
    if terms.max_per_job != 0 and w.runs.more[other, M_PREEMPTED] >= terms.max_per_job:
        return False
    mine = w.component[w.shapes[w.rows.shape[job], S_CLASS]]
    return w.component[w.shapes[w.rows.shape[other], S_CLASS]] == mine


@leaf
def add(w: World, live: Live, terms: Terms, count: int, other: int, group: int, now: int) -> int:
    crowd = live.crowd
    crowd.group[other] = group
    crowd.weigh[other] = weight_of(w, live, terms, other, now)
    crowd.found[count] = other
    return count + 1


@kernel
def gather_anywhere(w: World, live: Live, terms: Terms, z: Any, job: int, reclaim: int) -> int:
    """Whoever is less important, in whatever queue, and whose room can be reclaimed."""
    now = z[NOW]
    own = standing(w, live, terms, job, now)
    leaf_of = live.tree.leaf
    size = w.shapes[w.rows.shape[job], S_SIZE]
    count = 0
    for at in range(z[RUNNING]):
        other = live.crowd.running[at]
        if not can_be_stopped(w, live, terms, job, other, now):
            continue
        if standing(w, live, terms, other, now) < own:
            count = add(w, live, terms, count, other, 1, now)
        elif reclaim != 0 and leaf_of[other] != leaf_of[job]:
            over = lendable(live.tree, terms, leaf_of[job], leaf_of[other], size)
            if over >= w.shapes[w.rows.shape[other], S_SIZE]:
                count = add(w, live, terms, count, other, 0, now)
    return count


@kernel
def gather_by_queue(
    w: World, live: Live, terms: Terms, z: Any, job: int, by_rank: int, reclaim: int
) -> int:
    """Whoever is less important in the job's own queue, and whose room can be reclaimed."""
    now = z[NOW]
    crowd = live.crowd
    mine = live.tree.leaf[job]
    own = standing(w, live, terms, job, now)
    size = w.shapes[w.rows.shape[job], S_SIZE]
    count = 0
    other = crowd.front[mine] if by_rank != 0 else NONE
    while other != NONE:
        less = standing(w, live, terms, other, now) < own
        if less and can_be_stopped(w, live, terms, job, other, now):
            count = add(w, live, terms, count, other, 1, now)
        other = crowd.behind[other]
    for at in range(len(live.tree.rank) if reclaim != 0 else 0):
        queue = live.tree.rank[at]
        if queue == mine or crowd.front[queue] == NONE:
            continue
        over = lendable(live.tree, terms, mine, queue, size)
        other = crowd.front[queue] if over >= 0 else NONE
        while other != NONE:
            small = over >= w.shapes[w.rows.shape[other], S_SIZE]
            if small and can_be_stopped(w, live, terms, job, other, now):
                count = add(w, live, terms, count, other, 0, now)
            other = crowd.behind[other]
    return count


@kernel
def gather(w: World, live: Live, terms: Terms, z: Any, job: int, by_rank: int, reclaim: int) -> int:
    """Running jobs that may be stopped for `job`, as a heap in crowd.found; returns how many."""
    if by_rank != 0 and terms.own_queue == 0:
        count = gather_anywhere(w, live, terms, z, job, reclaim)
    else:
        count = gather_by_queue(w, live, terms, z, job, by_rank, reclaim)
    for at in range(count // 2 - 1, -1, -1):
        sift(w, live, terms, count, at, z[NOW])
    return count
