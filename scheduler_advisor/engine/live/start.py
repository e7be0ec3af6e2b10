"""Starting one job where it fits, without breaking the promise to the blocked head."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.cast import cast_shadow, release_at_shadow
from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.live.dissolved import dissolved
from scheduler_advisor.engine.live.going import set_going
from scheduler_advisor.engine.live.lines import take_out
from scheduler_advisor.engine.live.queues import admits, asks
from scheduler_advisor.engine.live.tuples import (
    BELIEVED,
    CAST,
    EPOCH,
    FREE,
    HEAD,
    LONG_EPOCH,
    MOMENT,
    NONE,
    NOW,
    SHADOWS_SUM,
    STAMP,
    WAITING,
    Live,
    Terms,
)
from scheduler_advisor.engine.parts.network import place_in_network
from scheduler_advisor.engine.place import move_job
from scheduler_advisor.engine.placing import may_fit
from scheduler_advisor.engine.scored import BY_CHANCE
from scheduler_advisor.engine.shadow import SH_AT, SH_FREE
from scheduler_advisor.engine.steps import milli_held, wall_of
from scheduler_advisor.engine.world import (
    RANDOM,
    S_SIZE,
    Rules,
    World,
)

NO_BACKFILL, GREEDY, EASY = 0, 1, 2


@leaf
def behind_a_head(rules: Rules, terms: Terms, z: Any) -> bool:
    """Does a promise to a blocked job bind whoever starts now?"""
    return z[HEAD] != NONE and rules.backfill == EASY and terms.whole_nodes == 0


@kernel
def casts(w: World, live: Live, rules: Rules, z: Any, head: int) -> None:
    """The promise to the head as things stand."""
    z[BELIEVED] = cast_shadow(
        w.nodes, w.shadow, w.shapes, w.classes, w.held, w.rows, w.runs, w.book, rules,
        live.believed, z[BELIEVED], w.scratch, head, z[FREE],
    )  # fmt: skip
    z[CAST] = 1
    z[SHADOWS_SUM] += 1
    z[LONG_EPOCH] += 1
    z[MOMENT] += 1


@leaf
def promised(w: World, job: int, now: int) -> bool:
    """Does the job end by the head's shadow, as far as anyone believes?"""
    until = now + max(wall_of(w.rows, w.runs, 1, job), w.rows.limit[job])
    return until <= w.shadow.number[SH_AT]


@leaf
def steady(rules: Rules, terms: Terms) -> bool:
    """Does the same shape fail the same way until something changes? Not by chance, in windows of
    time, or where jobs of one shape talk more or less."""
    by_chance = rules.placement == RANDOM or rules.ties == BY_CHANCE
    return not by_chance and rules.reservations == 0 and terms.by_network == 0


@leaf
def ended_behind(w: World, rules: Rules, job: int, guard: int) -> None:
    """A job started beside the promise to the head: what it takes is noted in the shadow."""
    if guard == 0:
        release_at_shadow(w.nodes, w.shadow, w.shapes, w.rows, w.book, rules.shares, job, 1)
    else:
        w.shadow.number[SH_FREE] -= milli_held(
            w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, job, 1
        )


@leaf
def may_be_placed(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int) -> int:
    """Is it worth looking for nodes? -1: no; 0: yes, anywhere; 1: where the promise allows it."""
    shape = w.rows.shape[job]
    size = w.shapes[shape, S_SIZE]
    if z[FREE] - size < rules.headroom_milli:
        w.failed[shape, 0] = z[EPOCH]
        return -1
    if w.failed[shape, 0] == z[EPOCH]:
        return -1
    if not behind_a_head(rules, terms, z):
        return 0
    if z[CAST] == 0:
        if not may_fit(w.buckets, w.classes, w.shapes, rules.most, shape):
            w.failed[shape, 0] = z[EPOCH]
            return -1
        casts(w, live, rules, z, z[HEAD])
    if promised(w, job, z[NOW]):
        return 0
    no_room = w.failed[shape, 1] == z[LONG_EPOCH] or w.failed[shape, 2] == z[MOMENT]
    return -1 if no_room or w.shadow.number[SH_FREE] - size < rules.headroom_milli else 1


@leaf
def taken_off(w: World, live: Live, z: Any, line: int, job: int) -> None:
    """The job, just examined, no longer waits."""
    live.lines.cursor[line] = take_out(live.lines, line, live.lines.cursor[line] - 1)
    z[WAITING] -= 1
    live.hope.waits[w.rows.shape[job]] -= 1
    asks(live.tree, z, live.tree.leaf[job], w.shapes[w.rows.shape[job], S_SIZE], -1)


@kernel
def place_now(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, guard: int, trial: int
) -> int:
    """Places the job; 1, 0 or -1 as `placing.place`. With `trial` it only asks whether the job
    would start now: its tasks are booked where they would go, and not taken.

    All of a driver's placing is behind this one call: a kernel that calls it contains it, and is
    made better as a whole once more."""
    if trial != 0:
        size = w.shapes[w.rows.shape[job], S_SIZE]
        if z[FREE] - size < rules.headroom_milli:
            return 0
        if not admits(live.tree, terms, live.tree.leaf[job], size, z[FREE]):
            return 0
    z[STAMP] += 1
    placed = place_in_network(w, live.net, rules, terms.by_network, job, z[NOW], z[STAMP], guard)
    if trial != 0 and placed == 1:
        move_job(w.nodes, w.buckets, w.shapes, w.rows, w.book, rules.most, rules.shares, job, 1)
    return placed


@dissolved
def starts(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, line: int, job: int, guard: int
) -> bool:
    """Starts the job where it fits; with `guard` only where the promise to the head allows it."""
    placed = place_now(w, live, rules, terms, z, job, guard, 0)
    if placed != 1:
        if placed == 0 and rules.reservations == 0:
            w.failed[w.rows.shape[job], guard] = z[LONG_EPOCH if guard != 0 else EPOCH]
        if placed < 0 and guard != 0 and steady(rules, terms):
            w.failed[w.rows.shape[job], 2] = z[MOMENT]
        return False
    taken_off(w, live, z, line, job)
    set_going(w, live, rules, terms, z, job, z[NOW], 0)
    if behind_a_head(rules, terms, z):
        ended_behind(w, rules, job, guard)
    return True
