"""Whom to stop for a job that cannot start: by rank within reach, and to get back what is lent."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.live.evict import (
    SCRATCH,
    clear_nodes,
    hold,
    needed_beyond,
    off_the_list,
    progress,
    push_believed,
    push_end,
    settle,
)
from scheduler_advisor.engine.live.order import standing
from scheduler_advisor.engine.live.queues import admits
from scheduler_advisor.engine.live.tuples import (
    BUDGET_OUT,
    CLAIMS,
    EPOCH,
    EVICTED,
    EVICTED_IN_HOUR,
    FREE,
    HOLDERS,
    HOUR,
    KEPT,
    LEAVES,
    LONG_EPOCH,
    NOW,
    PINNED,
    PLAIN,
    Q_DEPTH,
    Q_EVICTED,
    Q_FAIR,
    Q_GUARANTEE,
    Q_HELD,
    Q_HOUR,
    Q_PARENT,
    RUNNING,
    STAMP,
    STOPPED,
    Live,
    Terms,
    Tree,
)
from scheduler_advisor.engine.parts.network import place_in_network
from scheduler_advisor.engine.place import move_job
from scheduler_advisor.engine.steps import milli_held, wall_of
from scheduler_advisor.engine.world import (
    M_LEFT,
    M_PREEMPTED,
    RUNS,
    S_CLASS,
    S_SIZE,
    WAITS,
    Rules,
    World,
)

LOWEST_PRIORITY, YOUNGEST, LEAST_LOST = range(3)  # Terms.victims
LOOSE, STRICT = 1, 2  # Terms.reclaim
HOUR_S = 3600
BY_RANK, BY_RECLAIM = 1, 2  # Fate.by


@kernel
def parting(tree: Tree, mine: int, theirs: int) -> tuple[int, int]:
    """The queues of two jobs at the level at which their paths part."""
    row = tree.row
    while row[mine, Q_DEPTH] > row[theirs, Q_DEPTH]:
        mine = row[mine, Q_PARENT]
    while row[theirs, Q_DEPTH] > row[mine, Q_DEPTH]:
        theirs = row[theirs, Q_PARENT]
    while row[mine, Q_PARENT] != row[theirs, Q_PARENT]:
        mine = row[mine, Q_PARENT]
        theirs = row[theirs, Q_PARENT]
    return mine, theirs


@leaf
def right(tree: Tree, terms: Terms, queue: int) -> int:
    """What reclaim restores to the queue, and what it leaves to it."""
    return tree.row[queue, Q_FAIR if terms.reclaim_fair != 0 else Q_GUARANTEE]


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


@kernel
def gather(
    w: World, live: Live, terms: Terms, component: Any, z: Any, job: int, by_rank: int,
    reclaim: int,
) -> int:  # fmt: skip
    """Running jobs that may be stopped for `job`, as a heap in crowd.found; returns how many."""
    crowd = live.crowd
    tree = live.tree
    now = z[NOW]
    mine = component[w.shapes[w.rows.shape[job], S_CLASS]]
    own = standing(w, live, terms, job, now)
    size = w.shapes[w.rows.shape[job], S_SIZE]
    count = 0
    for at in range(z[RUNNING]):
        other = crowd.running[at]
        if (
            live.fate.stoppable[other] == 0
            or w.runs.phase[other] != RUNS
            or live.fate.kind[other] != PLAIN
            or component[w.shapes[w.rows.shape[other], S_CLASS]] != mine
            or now - w.runs.start[other] < terms.min_run
            or (terms.max_per_job != 0 and w.runs.more[other, M_PREEMPTED] >= terms.max_per_job)
        ):
            continue
        same = tree.leaf[other] == tree.leaf[job]
        ranked = by_rank != 0 and (same or terms.own_queue == 0)
        ranked = ranked and standing(w, live, terms, other, now) < own
        if not ranked:
            if reclaim == 0 or same:
                continue
            one, _ = parting(tree, tree.leaf[job], tree.leaf[other])
            if tree.row[one, Q_HELD] + size > right(tree, terms, one):
                continue
        crowd.group[other] = 1 if ranked else 0
        crowd.weigh[other] = weight_of(w, live, terms, other, now)
        crowd.found[count] = other
        count += 1
    for at in range(count // 2 - 1, -1, -1):
        sift(w, live, terms, count, at, now)
    return count


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


@kernel
def fits(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int) -> bool:
    """Would the job start now? Its tasks are booked where they would go, not taken."""
    size = w.shapes[w.rows.shape[job], S_SIZE]
    if z[FREE] - size < rules.headroom_milli:
        return False
    if not admits(live.tree, terms, live.tree.leaf[job], size, z[FREE]):
        return False
    z[STAMP] += 1
    if place_in_network(w, live.net, rules, terms.by_network, job, z[NOW], z[STAMP], 0) != 1:
        return False
    move_job(w.nodes, w.buckets, w.shapes, w.rows, w.book, rules.most, rules.shares, job, 1)
    return True


@kernel
def make_room(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, by_rank: int,
    reclaim: int,
) -> int:  # fmt: skip
    """Stops as few jobs as this order needs so that the job can start; returns how many. They are
    in crowd.chosen. Victims are lifted off until it fits; then, last one first, each goes back if
    the job fits all the same."""
    crowd = live.crowd
    count = gather(w, live, terms, w.component, z, job, by_rank, reclaim)
    hour = z[NOW] // HOUR_S
    lifted = 0
    enough = False
    while count > 0 and not enough:
        victim = crowd.found[0]
        count -= 1
        crowd.found[0] = crowd.found[count]
        sift(w, live, terms, count, 0, z[NOW])
        if crowd.group[victim] == 0 and not above(live.tree, terms, w, job, victim):
            continue
        if not within_budget(w, live, terms, z, victim, lifted, hour):
            z[BUDGET_OUT] = 1
            continue
        lift(w, live, rules, terms, z, victim, 1)
        crowd.chosen[lifted] = victim
        lifted += 1
        enough = fits(w, live, rules, terms, z, job)
    if not enough:
        for at in range(lifted - 1, -1, -1):
            lift(w, live, rules, terms, z, crowd.chosen[at], -1)
        return 0
    for at in range(lifted - 1, -1, -1):
        lift(w, live, rules, terms, z, crowd.chosen[at], -1)
        if fits(w, live, rules, terms, z, job):
            crowd.chosen[at] = -1
        else:
            lift(w, live, rules, terms, z, crowd.chosen[at], 1)
    kept = 0
    for at in range(lifted):
        if crowd.chosen[at] >= 0:
            crowd.chosen[kept] = crowd.chosen[at]
            kept += 1
    fits(w, live, rules, terms, z, job)  # books the places once more
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
        settle(w.rows, w.runs, terms.mode, victim, now)
        z[HOLDERS] -= milli_held(w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, victim, 0)
        lift(w, live, rules, terms, z, victim, 1)
        off_the_list(live, z, victim)
        w.runs.phase[victim] = WAITS
        live.fate.kind[victim] = PINNED if terms.mode == 3 else PLAIN
        live.crowd.stopped[z[STOPPED]] = victim
        z[STOPPED] += 1
    z[EPOCH] += 1
    z[LONG_EPOCH] += 1


@kernel
def claim(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, victims: int) -> None:
    """The victims are told to leave; what the job needs beyond theirs is kept for it."""
    now = z[NOW]
    crowd = live.crowd
    extra = needed_beyond(w, live, rules, terms, job, victims, 1)
    z[FREE] -= extra
    z[KEPT] += extra
    for at in range(victims):
        victim = crowd.chosen[at]
        live.fate.kind[victim] = EVICTED
        live.fate.claim[victim] = job
        live.fate.natural[victim] = w.runs.end[victim]
        w.runs.phase[victim] = LEAVES
        if now + terms.grace < w.runs.end[victim]:
            w.runs.end[victim] = now + terms.grace
            push_end(w, live, z, victim, now + terms.grace)
        crowd.victims[1 + crowd.victims[0]] = victim
        crowd.victims[0] += 1
    crowd.claimants[1 + crowd.claimants[0]] = job
    crowd.claimants[0] += 1
    live.fate.kind[job] = CLAIMS
    live.fate.left[job] = victims
    w.runs.phase[job] = RUNS
    w.runs.start[job] = now + terms.grace
    w.runs.end[job] = now + terms.grace + wall_of(w.rows, w.runs, 1, job)
    push_believed(w, live, z, job)
    hold(w, live, rules, terms, job, now, 1)
