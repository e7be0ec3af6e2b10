"""Nodes go and come back, while jobs run on them, leave them, or wait suspended on them."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.buckets import enter
from scheduler_advisor.engine.buckets import leave as leave_bucket
from scheduler_advisor.engine.live.achieved import REQUEUE, SUSPEND, lose_stake, settle
from scheduler_advisor.engine.live.claims import give_up_on
from scheduler_advisor.engine.live.compiled import kernel
from scheduler_advisor.engine.live.going import forget_memory, leave
from scheduler_advisor.engine.live.hope import grow_for_all
from scheduler_advisor.engine.live.order import enqueue
from scheduler_advisor.engine.live.tuples import (
    EPOCH,
    EVENTS_SUM,
    FALLEN,
    FREE,
    GONE,
    HAPPENED,
    LONG_EPOCH,
    NONE,
    PINNED,
    PLAIN,
    RUNNING,
    WRITING,
    Live,
    Terms,
)
from scheduler_advisor.engine.live.writing import stop_writing
from scheduler_advisor.engine.outside import free_on, on_node
from scheduler_advisor.engine.world import (
    DOWN,
    GPU,
    GROUP,
    NODE_FAILS,
    NODE_UP,
    RESERVATION_EDGE,
    RUNS,
    Rules,
    World,
)


@kernel
def happen(w: World, live: Live, rules: Rules, terms: Terms, z: Any, now: int) -> None:
    """Nodes go and come back; reservations begin and end."""
    while z[HAPPENED] < len(w.outside) and w.outside[z[HAPPENED], 0] <= now:
        kind = w.outside[z[HAPPENED], 1]
        node = w.outside[z[HAPPENED], 2]
        z[HAPPENED] += 1
        z[EVENTS_SUM] += 1
        z[EPOCH] += 1
        z[LONG_EPOCH] += 1
        grow_for_all(live.hope, z)
        if kind == RESERVATION_EDGE:
            continue
        table = w.nodes.table
        if kind == NODE_UP:
            table[node, DOWN] -= 1
            if table[node, DOWN] == 0:
                enter(w.buckets, table[node, GROUP], table[node, GPU], rules.most, node)
                z[FREE] += free_on(w.nodes, rules.shares, node)
            continue
        table[node, DOWN] += 1
        if table[node, DOWN] == 1:
            leave_bucket(w.buckets, table[node, GROUP], table[node, GPU], rules.most, node)
            z[FREE] -= free_on(w.nodes, rules.shares, node)
        if terms.timed != 0:
            give_up_on(w, live, rules, terms, z, node, now)
        if kind == NODE_FAILS:
            fail(w, live, rules, terms, z, node, now)


@kernel
def fail(w: World, live: Live, rules: Rules, terms: Terms, z: Any, node: int, now: int) -> None:
    """The jobs on the node queue again with what their checkpoints kept."""
    at = 0
    while at < z[RUNNING]:
        job = live.crowd.running[at]
        before = z[RUNNING]
        if on_node(w.shapes, w.rows, w.book, job, node):
            strike(w, live, rules, terms, z, job, now)
        if z[RUNNING] == before:  # else another stands here now
            at += 1
    if terms.mode == SUSPEND:
        forget_suspended(w, live, rules, node)


@kernel
def strike(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, now: int) -> None:
    """A node of the job fails: what is not on storage is lost. Where its room is kept for another
    it stays kept."""
    fate = live.fate
    kind = fate.kind[job]
    if kind in (GONE, FALLEN) or (kind == PLAIN and w.runs.phase[job] != RUNS):
        return  # has left; who is suspended leaves with all the others, and they start at once
    if kind == WRITING:
        at = 0
        while live.crowd.writer[at] != job:
            at += 1
        stop_writing(w, live, z, at, now)
        lose_stake(w.runs, fate, job)
    else:
        settle(w.rows, w.runs, fate, REQUEUE, job, now)
    fate.kind[job] = PLAIN
    leave(w, live, rules, terms, z, job, now)
    if fate.claim[job] == NONE:
        enqueue(w, live, terms, z, job, now)
    else:
        fate.kind[job] = FALLEN


@kernel
def forget_suspended(w: World, live: Live, rules: Rules, node: int) -> None:
    """Suspended jobs with memory on the node start anew from their last checkpoints, anywhere."""
    lines = live.lines
    for line in range(len(lines.first)):
        for at in range(lines.first[line], lines.last[line]):
            job = lines.jobs[at]
            pinned = live.fate.kind[job] == PINNED
            if pinned and on_node(w.shapes, w.rows, w.book, job, node):
                forget_memory(w, rules, job)
                lose_stake(w.runs, live.fate, job)
                live.fate.kind[job] = PLAIN
