"""Whom to stop for a job that cannot start: as few as the order of victims needs."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.live.achieved import CHECKPOINT, SUSPEND, settle
from scheduler_advisor.engine.live.candidates import gather, sift
from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.live.dissolved import dissolved
from scheduler_advisor.engine.live.going import clear_nodes, hold, off_the_list
from scheduler_advisor.engine.live.hope import grow_by
from scheduler_advisor.engine.live.queues import STRICT, parting, right
from scheduler_advisor.engine.live.start import place_now
from scheduler_advisor.engine.live.tuples import (
    BUDGET_OUT,
    CLOCK,
    EPOCH,
    EVICTED_IN_HOUR,
    FREE,
    HOLDERS,
    HOUR,
    LONG_EPOCH,
    NOW,
    PINNED,
    PLAIN,
    Q_EVICTED,
    Q_HELD,
    Q_HOUR,
    STOPPED,
    Live,
    Terms,
    Tree,
)
from scheduler_advisor.engine.steps import milli_held
from scheduler_advisor.engine.world import M_PREEMPTED, S_SIZE, WAITS, Rules, World

HOUR_S = 3600
BY_RANK, BY_RECLAIM = 1, 2  # Fate.by


@leaf
def above(tree: Tree, terms: Terms, w: World, job: int, other: int) -> bool:
    """Is the victim's queue above its entitlement, and by how much must it be?"""
    _, theirs = parting(tree, tree.leaf[job], tree.leaf[other])
    held = tree.row[theirs, Q_HELD]
    if terms.reclaim == STRICT:
        return held - w.shapes[w.rows.shape[other], S_SIZE] >= right(tree, terms, theirs)
    return held > right(tree, terms, theirs)


@leaf
def within_budget(
    w: World, live: Live, terms: Terms, z: Any, victim: int, lifted: int, hour: int
) -> bool:
    """Do the guards that are counted by the hour let one more be stopped?"""
    so_far = z[EVICTED_IN_HOUR] if z[HOUR] == hour else 0
    if terms.max_per_hour != 0 and so_far + lifted + 1 > terms.max_per_hour:
        return False
    if terms.max_team_milli == 0:
        return True
    queue = live.tree.leaf[victim]
    gone = live.tree.row[queue, Q_EVICTED] if live.tree.row[queue, Q_HOUR] == hour else 0
    gone += w.shapes[w.rows.shape[victim], S_SIZE]
    for at in range(lifted):
        if live.tree.leaf[live.crowd.chosen[at]] == queue:
            gone += w.shapes[w.rows.shape[live.crowd.chosen[at]], S_SIZE]
    return gone <= terms.max_team_milli


@kernel
def lift(w: World, live: Live, rules: Rules, terms: Terms, z: Any, victim: int, sign: int) -> None:
    """Takes a running job off its nodes and off the counts in thought (+1), or puts it back."""
    milli = milli_held(w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, victim, 1)
    z[FREE] += sign * milli
    clear_nodes(w, rules, terms, victim, 0, sign)
    hold(w, live, rules, terms, victim, z[NOW], -sign)


@dissolved
def lift_until_it_fits(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, by_rank: int,
    reclaim: int,
) -> tuple[int, int]:  # fmt: skip
    """Lifts victims off, in their order, into crowd.chosen; returns how many, and the last answer
    of `place_now`, or -1 where a guard spared somebody."""
    crowd = live.crowd
    count = gather(w, live, terms, z, job, by_rank, reclaim)
    hour = z[NOW] // HOUR_S
    lifted = 0
    spared = False
    answer = 0
    if count == 0 and terms.remembers != 0:
        answer = min(0, place_now(w, live, rules, terms, z, job, 0, 1))
    while count > 0 and answer != 1:
        victim = crowd.found[0]
        count -= 1
        crowd.found[0] = crowd.found[count]
        sift(w, live, terms, count, 0, z[NOW])
        if crowd.group[victim] == 0 and not above(live.tree, terms, w, job, victim):
            continue
        if not within_budget(w, live, terms, z, victim, lifted, hour):
            z[BUDGET_OUT] = 1
            spared = True
            continue
        lift(w, live, rules, terms, z, victim, 1)
        crowd.chosen[lifted] = victim
        lifted += 1
        answer = place_now(w, live, rules, terms, z, job, 0, 1)
    return lifted, -1 if spared and answer != 1 else answer


@dissolved
def make_room(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, by_rank: int,
    reclaim: int,
) -> int:  # fmt: skip
    """Stops as few jobs as this order needs so that the job can start; returns how many. They are
    in crowd.chosen. Victims are lifted off until it fits; then, last one first, each goes back if
    the job fits all the same."""
    crowd = live.crowd
    hour = z[NOW] // HOUR_S
    lifted, answer = lift_until_it_fits(w, live, rules, terms, z, job, by_rank, reclaim)
    if answer != 1:
        for at in range(lifted - 1, -1, -1):
            lift(w, live, rules, terms, z, crowd.chosen[at], -1)
        if terms.remembers != 0 and answer == 0:
            live.hope.vain[job] = z[CLOCK]
        return 0
    for at in range(lifted - 1, -1, -1):
        lift(w, live, rules, terms, z, crowd.chosen[at], -1)
        if place_now(w, live, rules, terms, z, job, 0, 1) == 1:
            crowd.chosen[at] = -1
        else:
            lift(w, live, rules, terms, z, crowd.chosen[at], 1)
    kept = 0
    for at in range(lifted):
        if crowd.chosen[at] >= 0:
            crowd.chosen[kept] = crowd.chosen[at]
            kept += 1
    place_now(w, live, rules, terms, z, job, 0, 1)  # books the places once more
    for at in range(kept):
        lift(w, live, rules, terms, z, crowd.chosen[at], -1)
    if kept > 0:  # else it fits as it is: what holds it is the promise to the head
        note(w, live, z, job, kept, hour)
    return kept


@leaf
def note(w: World, live: Live, z: Any, job: int, victims: int, hour: int) -> None:
    """Counts the stops against the guards."""
    if z[HOUR] != hour:
        z[HOUR] = hour
        z[EVICTED_IN_HOUR] = 0
    z[EVICTED_IN_HOUR] += victims
    ranked = 0
    for at in range(victims):
        victim = live.crowd.chosen[at]
        ranked += live.crowd.group[victim]
        w.runs.more[victim, M_PREEMPTED] += 1
        row = live.tree.row
        queue = live.tree.leaf[victim]
        if row[queue, Q_HOUR] != hour:
            row[queue, Q_HOUR] = hour
            row[queue, Q_EVICTED] = 0
        row[queue, Q_EVICTED] += w.shapes[w.rows.shape[victim], S_SIZE]
    live.fate.by[job] = BY_RANK if ranked > 0 else BY_RECLAIM
    live.fate.asked_at[job] = z[NOW]


@kernel
def stop_at_once(w: World, live: Live, rules: Rules, terms: Terms, z: Any, victims: int) -> None:
    """The victims leave now; they queue again when the pass is over."""
    now = z[NOW]
    for at in range(victims):
        victim = live.crowd.chosen[at]
        settle(w.rows, w.runs, live.fate, terms.mode, victim, now)
        if terms.mode == CHECKPOINT:
            live.fate.stake[victim] = 0  # written at once
        z[HOLDERS] -= milli_held(w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, victim, 0)
        lift(w, live, rules, terms, z, victim, 1)
        grow_by(w, live, terms, z, victim, now)
        off_the_list(w, live, z, victim)
        w.runs.phase[victim] = WAITS
        live.fate.kind[victim] = PINNED if terms.mode == SUSPEND else PLAIN
        live.crowd.stopped[z[STOPPED]] = victim
        z[STOPPED] += 1
    z[EPOCH] += 1
    z[LONG_EPOCH] += 1
