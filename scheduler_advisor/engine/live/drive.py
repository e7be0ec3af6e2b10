"""The general driver's loop: at each instant ends, writes, claims, outside events, arrivals, and
one pass. What may start depends on what is running, so nothing of a pass is kept for the next."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.heap import JOB_BITS, JOB_MASK, pop
from scheduler_advisor.engine.live.claims import resolve
from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.live.dissolved import dissolved
from scheduler_advisor.engine.live.ends import dead, push_timers, rings
from scheduler_advisor.engine.live.failures import happen
from scheduler_advisor.engine.live.going import leave
from scheduler_advisor.engine.live.hope import grow_for_all
from scheduler_advisor.engine.live.one_pass import part_pass
from scheduler_advisor.engine.live.order import MULTIFACTOR, PREDICTED, enqueue, learn, recompute
from scheduler_advisor.engine.live.plan import forget_plans
from scheduler_advisor.engine.live.queues import refresh, share_out
from scheduler_advisor.engine.live.refs import referred
from scheduler_advisor.engine.live.tuples import (
    ARRIVED,
    BLOCKED,
    BUDGET_OUT,
    DOWN_SUM,
    DUE,
    ENDS,
    EVENTS_SUM,
    EVICTED,
    FIRST,
    FREE,
    FREE_SUM,
    HAPPENED,
    HELD_SUM,
    HOLDERS,
    KEPT,
    KEPT_SUM,
    NOW,
    PASSES_SUM,
    PLAIN,
    QUEUED_SUM,
    RUNNING,
    STOPPED,
    TIMERS,
    WAITING,
    WRITERS,
    Live,
    Terms,
)
from scheduler_advisor.engine.live.writing import force_out, next_written, write_on, written
from scheduler_advisor.engine.steps import finish
from scheduler_advisor.engine.world import (
    Rules,
    World,
)

LATER = 1 << 62
HOUR_S = 3600


@kernel
def next_instant(w: World, live: Live, rules: Rules, terms: Terms, z: Any) -> int:
    """When something happens next; LATER if nothing will."""
    while z[ENDS] > 0 and dead(w.runs, live, live.ends[0], live.ends[0] & JOB_MASK):
        z[ENDS] = pop(live.ends, z[ENDS])
    at = LATER
    if z[ENDS] > 0:
        at = live.ends[0] >> JOB_BITS
    if z[HAPPENED] < len(w.outside):
        at = min(at, w.outside[z[HAPPENED], 0])
    if z[WRITERS] > 0:
        at = min(at, next_written(live, terms, z))
    while z[TIMERS] > 0 and not rings(w, live, terms, live.timers[0]):
        z[TIMERS] = pop(live.timers, z[TIMERS])
    if z[TIMERS] > 0:
        at = min(at, live.timers[0] >> JOB_BITS)
    if z[BUDGET_OUT] != 0 and z[RUNNING] > 0:
        at = min(at, (z[NOW] // HOUR_S + 1) * HOUR_S)
    waits = terms.interval != 0 and z[WAITING] > 0 and z[BLOCKED] != 0
    if waits and (z[NOW] % terms.interval != 0 or z[RUNNING] > 0):
        at = min(at, (z[NOW] // terms.interval + 1) * terms.interval)
    z[DUE] = max(at, z[NOW])
    if z[ARRIVED] < len(w.arrival):
        at = min(at, w.eligible[w.arrival[z[ARRIVED]]])
    return max(at, z[NOW])


@leaf
def queue_children(w: World, live: Live, terms: Terms, z: Any, job: int, now: int) -> None:
    """Those who waited for this job alone, and are eligible, queue."""
    family = w.family
    # Who becomes eligible at this very instant comes with the arrivals, unless they are past.
    come = z[ARRIVED] >= len(w.arrival) or w.eligible[w.arrival[z[ARRIVED]]] > now
    for at in range(family.child_start[job], family.child_start[job + 1]):
        child = family.children[at]
        family.waits_for[child] -= 1
        free = w.rows.shape[child] >= 0 and family.waits_for[child] == 0
        if free and (w.eligible[child] < now or (come and w.eligible[child] == now)):
            enqueue(w, live, terms, z, child, now)


@kernel
def end_all(w: World, live: Live, rules: Rules, terms: Terms, z: Any, now: int) -> None:
    """Attempts whose time has come end, by themselves or because their grace is over."""
    while z[ENDS] > 0 and live.ends[0] >> JOB_BITS <= now:
        packed = live.ends[0]
        job = packed & JOB_MASK
        z[ENDS] = pop(live.ends, z[ENDS])
        if dead(w.runs, live, packed, job):
            continue
        z[EVENTS_SUM] += 1
        if live.fate.kind[job] == EVICTED and now < live.fate.natural[job]:
            force_out(w, live, rules, terms, z, job, now)
            continue
        finish(w.rows, w.runs, 1, job)
        live.fate.kind[job] = PLAIN
        leave(w, live, rules, terms, z, job, now)
        if terms.order == PREDICTED:
            learn(live, w.rows, job)
        if rules.dependencies != 0:
            queue_children(w, live, terms, z, job, now)


@kernel
def arrive(w: World, live: Live, rules: Rules, terms: Terms, z: Any, now: int) -> int:
    """Jobs become eligible; returns how many queue."""
    queued = 0
    while z[ARRIVED] < len(w.arrival) and w.eligible[w.arrival[z[ARRIVED]]] <= now:
        job = w.arrival[z[ARRIVED]]
        z[ARRIVED] += 1
        z[EVENTS_SUM] += 1
        if rules.dependencies != 0 and w.family.waits_for[job] > 0:
            continue
        enqueue(w, live, terms, z, job, now)
        queued += 1
    return queued


@dissolved
def scheduling_pass(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, lines_each: int
) -> None:
    """One pass over every set of competing jobs; those that were stopped queue at its end."""
    now = z[NOW]
    z[BUDGET_OUT] = 0
    z[BLOCKED] = 0
    if z[WAITING] == 0:
        return
    if z[FREE] < rules.smallest_milli and terms.preempts == 0 and terms.interval == 0:
        return
    z[PASSES_SUM] += 1
    if terms.two_step != 0:
        share_out(live.tree, live.total[0])
    if terms.by_queue != 0 or terms.order == MULTIFACTOR:
        refresh(live.tree, terms, live.total, now)
    if terms.order == MULTIFACTOR:
        recompute(w, live, terms, z, now)
    z[STOPPED] = 0
    for part in range(rules.components):
        part_pass(w, live, rules, terms, z, part, lines_each)
        if terms.whole_nodes != 0:
            forget_plans(w, terms, z)
    for at in range(z[STOPPED]):
        enqueue(w, live, terms, z, live.crowd.stopped[at], now)


@dissolved
def replay(w: World, live: Live, rules: Rules, terms: Terms, z: Any, lines_each: int) -> None:
    """Instant by instant, until nothing happens any more."""
    while True:
        at = next_instant(w, live, rules, terms, z)
        if at >= LATER:
            break
        if z[FIRST] == LATER:
            z[FIRST] = at
            z[NOW] = at
        passed = at - z[NOW]
        z[HELD_SUM] += z[HOLDERS] * passed
        z[KEPT_SUM] += z[KEPT] * passed
        z[FREE_SUM] += z[FREE] * passed
        z[DOWN_SUM] += (live.total[0] - z[HOLDERS] - z[KEPT] - z[FREE]) * passed
        z[QUEUED_SUM] += z[WAITING] * passed
        z[NOW] = at
        write_on(w, live, terms, z, at)
        end_all(w, live, rules, terms, z, at)
        written(w, live, rules, terms, z, at)
        resolve(w, live, rules, terms, z, at)
        happen(w, live, rules, terms, z, at)
        resolve(w, live, rules, terms, z, at)  # a failure may have taken the last victim
        queued = arrive(w, live, rules, terms, z, at)
        while z[TIMERS] > 0 and live.timers[0] >> JOB_BITS <= at:
            job = live.timers[0] & JOB_MASK
            due = rings(w, live, terms, live.timers[0])
            z[TIMERS] = pop(live.timers, z[TIMERS])
            if due:
                grow_for_all(live.hope, z)
            if due and terms.has_levels != 0:
                push_timers(w, live, terms, z, job, at)
        if queued > 0 or z[DUE] <= at:
            scheduling_pass(w, live, rules, terms, z, lines_each)


@kernel
def drive_live(w: World, live: Live, rules: Rules, terms: Terms, z: Any, lines_each: int) -> None:
    """Replays all jobs; what became of them is in w.runs, w.book and live.fate, sums in z."""
    replay(referred(w), referred(live), referred(rules), referred(terms), z, lines_each)
