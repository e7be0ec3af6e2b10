"""One job's turn in a pass: it starts, others leave for it, or it is blocked."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.live.claims import claim
from scheduler_advisor.engine.live.compiled import leaf
from scheduler_advisor.engine.live.dissolved import dissolved
from scheduler_advisor.engine.live.going import set_going
from scheduler_advisor.engine.live.hope import looked_in_vain, too_little
from scheduler_advisor.engine.live.plan import plan_job
from scheduler_advisor.engine.live.queues import admits, right
from scheduler_advisor.engine.live.start import may_be_placed, place_now, starts, taken_off
from scheduler_advisor.engine.live.suspended import goes_on_in_place
from scheduler_advisor.engine.live.tuples import (
    BLOCKED,
    CAST,
    EXAMINED_SUM,
    FREE,
    HEAD,
    NONE,
    NOW,
    PASS,
    PINNED,
    PLANS,
    Q_HELD,
    Q_PARENT,
    Q_SEEN,
    SEEN_QUEUES,
    Live,
    Terms,
)
from scheduler_advisor.engine.live.victims import make_room, stop_at_once
from scheduler_advisor.engine.waiting import held_back
from scheduler_advisor.engine.world import (
    S_SIZE,
    Rules,
    World,
)


@leaf
def passed_over(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int) -> bool:
    """Is the job not even tried: behind its blocked queue, too long, or held back by its own?"""
    if terms.strict != 0 and live.tree.row[live.tree.leaf[job], Q_SEEN] == z[PASS]:
        return True
    if z[HEAD] != NONE and rules.max_limit != 0 and w.rows.limit[job] > rules.max_limit:
        return True
    if rules.limits == 0 and rules.reservations == 0:
        return False
    size = w.shapes[w.rows.shape[job], S_SIZE]
    return held_back(w.held, w.limits, w.rows, size, rules.reservations, rules.limits, job, z[NOW])


@leaf
def within_right(live: Live, terms: Terms, queue: int, milli: int) -> bool:
    """Would some queue above the job, or its own, stay within its entitlement with it?"""
    row = live.tree.row
    found = False
    while queue > 0:
        if row[queue, Q_HELD] + milli <= right(live.tree, terms, queue):
            found = True
            break
        queue = row[queue, Q_PARENT]
    return found


@dissolved
def makes_room(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, line: int, job: int
) -> bool:
    """Stops others for the job if it may, and starts it now or when they have left. What can be
    refused at once is refused here: a call costs more than these questions."""
    queue = live.tree.leaf[job]
    seen = live.tree.row[queue, Q_SEEN] == z[PASS]
    its_turn = not seen if terms.own_queue != 0 else z[HEAD] == NONE
    above_some = terms.coarse != 0 or live.hope.rank[job] != 0
    by_rank = 1 if terms.by_rank != 0 and above_some and its_turn else 0
    reclaim = 0
    if terms.reclaim != 0 and not seen:
        size = w.shapes[w.rows.shape[job], S_SIZE]
        reclaim = 1 if within_right(live, terms, queue, size) else 0
    if by_rank == 0 and reclaim == 0:
        return False
    if looked_in_vain(live, terms, job):
        return False
    if too_little(w, live, rules, terms, z, job, by_rank, reclaim):
        return False
    return stops_others(w, live, rules, terms, z, line, job, by_rank, reclaim)


@dissolved
def stops_others(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, line: int, job: int, by_rank: int,
    reclaim: int,
) -> bool:  # fmt: skip
    """Looks for victims, and if there are some starts the job at their cost."""
    victims = make_room(w, live, rules, terms, z, job, by_rank, reclaim)
    if victims == 0:
        return False
    taken_off(w, live, z, line, job)
    if terms.timed != 0:
        claim(w, live, rules, terms, z, job, victims)
        return True
    stop_at_once(w, live, rules, terms, z, victims)
    place_now(w, live, rules, terms, z, job, 0, 0)
    set_going(w, live, rules, terms, z, job, z[NOW], 0)
    return True


@dissolved
def examine(w: World, live: Live, rules: Rules, terms: Terms, z: Any, line: int, job: int) -> bool:
    """One job's turn; does it start, or does somebody leave for it?"""
    z[EXAMINED_SUM] += 1
    if passed_over(w, live, rules, terms, z, job):
        return False
    if live.fate.kind[job] == PINNED:
        return goes_on_in_place(w, live, rules, terms, z, line, job)
    queue = live.tree.leaf[job]
    size = w.shapes[w.rows.shape[job], S_SIZE]
    admitted = admits(live.tree, terms, queue, size, z[FREE])
    guard = may_be_placed(w, live, rules, terms, z, job) if admitted else -1
    if guard >= 0 and starts(w, live, rules, terms, z, line, job, guard):
        return True
    if terms.preempts != 0 and makes_room(w, live, rules, terms, z, line, job):
        z[CAST] = 0
        return True
    if live.tree.row[queue, Q_SEEN] != z[PASS]:
        live.tree.row[queue, Q_SEEN] = z[PASS]
        z[SEEN_QUEUES] += 1
    if admitted:
        z[BLOCKED] = 1
        if terms.whole_nodes != 0 and z[PLANS] < terms.most_plans:
            plan_job(w, live, rules, terms, z, job)
        if z[HEAD] == NONE:
            z[HEAD] = job
            z[CAST] = 0
    return False
