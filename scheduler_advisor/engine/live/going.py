"""Jobs begin to run and leave: lists, counters, nodes, and what is kept of them there."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.live.achieved import SUSPEND
from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.live.ends import push_believed, push_end, push_timers
from scheduler_advisor.engine.live.hope import count_stoppable, grow_by, uncount_stoppable
from scheduler_advisor.engine.live.order import enqueue
from scheduler_advisor.engine.live.queues import count
from scheduler_advisor.engine.live.tuples import (
    EPOCH,
    EVICTED,
    FREE,
    GONE,
    HOLDERS,
    KEPT,
    LEAVES,
    LONG_EPOCH,
    NONE,
    PINNED,
    PLAIN,
    RESOLVED,
    RUNNING,
    Live,
    Terms,
)
from scheduler_advisor.engine.parts.net import slow_down
from scheduler_advisor.engine.place import move_job, take_plain, tasks_of
from scheduler_advisor.engine.steps import begin, milli_held
from scheduler_advisor.engine.waiting import count_in
from scheduler_advisor.engine.world import (
    S_MEM,
    S_REST_MEM,
    S_SIZE,
    S_TASKS,
    Rules,
    World,
)


@kernel
def set_going(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, now: int, counted: int
) -> None:
    """The job's tasks are on their nodes: it runs from now. `counted`: its queue and limits count
    it already."""
    if terms.slows != 0:
        slow_down(w.nodes, live.net, w.shapes, w.rows, w.runs, w.book, rules.shares, 1, job)
    end = begin(w.rows, w.runs, 1, job, now)
    live.fate.kind[job] = PLAIN
    size = w.shapes[w.rows.shape[job], S_SIZE]
    if counted == 0:
        hold(w, live, rules, terms, job, now, 1)
    push_end(w, live, z, job, end)
    live.crowd.at[job] = z[RUNNING]
    live.crowd.running[z[RUNNING]] = job
    z[RUNNING] += 1
    into_queue(live, job)
    count_stoppable(w, live, terms, job)
    push_believed(w, live, z, job)
    z[FREE] -= milli_held(w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, job, 1)
    z[HOLDERS] += milli_held(w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, job, 0)
    if size >= 0 and terms.preempts != 0 and (terms.min_run != 0 or terms.has_levels != 0):
        push_timers(w, live, terms, z, job, now)


@leaf
def hold(w: World, live: Live, rules: Rules, terms: Terms, job: int, now: int, sign: int) -> None:
    """The job begins (+1) or ceases (-1) to count in its queues and limits."""
    size = w.shapes[w.rows.shape[job], S_SIZE]
    count(
        live.tree, terms, live.total, live.tree.leaf[job], sign * size,
        sign * live.size_cpu[job], sign * live.size_mem[job], now,
    )  # fmt: skip
    if rules.limits != 0:
        count_in(w.limits, size, job, sign)


@leaf
def into_queue(live: Live, job: int) -> None:
    """The job is one of its queue's running ones."""
    crowd = live.crowd
    queue = live.tree.leaf[job]
    first = crowd.front[queue]
    crowd.behind[job] = first
    crowd.before[job] = NONE
    if first != NONE:
        crowd.before[first] = job
    crowd.front[queue] = job


@leaf
def off_the_list(w: World, live: Live, z: Any, job: int) -> None:
    """The job no longer runs."""
    crowd = live.crowd
    z[RUNNING] -= 1
    last = crowd.running[z[RUNNING]]
    crowd.running[crowd.at[job]] = last
    crowd.at[last] = crowd.at[job]
    behind = crowd.behind[job]
    before = crowd.before[job]
    if before != NONE:
        crowd.behind[before] = behind
    else:
        crowd.front[live.tree.leaf[job]] = behind
    if behind != NONE:
        crowd.before[behind] = before
    uncount_stoppable(w, live, job)


@kernel
def clear_nodes(w: World, rules: Rules, terms: Terms, job: int, done: int, sign: int) -> None:
    """The job's tasks leave their nodes (+1) or are put back (-1); one that is suspended keeps its
    memory."""
    move_job(w.nodes, w.buckets, w.shapes, w.rows, w.book, rules.most, rules.shares, job, sign)
    if terms.mode != SUSPEND or done != 0:
        return
    shape = w.rows.shape[job]
    for task in range(tasks_of(w.shapes, shape)):
        rest = task == w.shapes[shape, S_TASKS]
        mem = w.shapes[shape, S_REST_MEM if rest else S_MEM]
        node = w.book.node[w.rows.place[job] + task]
        take_plain(w.nodes, w.buckets, rules.most, node, 0, 0, sign * mem)


@kernel
def forget_memory(w: World, rules: Rules, job: int) -> None:
    """What a suspended job kept on its nodes is free."""
    shape = w.rows.shape[job]
    for task in range(tasks_of(w.shapes, shape)):
        rest = task == w.shapes[shape, S_TASKS]
        mem = w.shapes[shape, S_REST_MEM if rest else S_MEM]
        node = w.book.node[w.rows.place[job] + task]
        take_plain(w.nodes, w.buckets, rules.most, node, 0, 0, -mem)


@kernel
def leave(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, now: int) -> None:
    """The attempt is over: its room is free, or kept for the job that it was made for."""
    hold(w, live, rules, terms, job, now, -1)
    milli = milli_held(w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, job, 0)
    z[HOLDERS] -= milli
    claim = live.fate.claim[job]
    stopped = live.fate.kind[job] == EVICTED
    if claim != NONE:
        z[KEPT] += milli
        live.fate.left[claim] -= 1
        w.runs.phase[job] = LEAVES
        if stopped:
            live.fate.kind[job] = GONE
        if live.fate.left[claim] == 0:
            z[RESOLVED] += 1
        return
    grow_by(w, live, terms, z, job, now)
    off_the_list(w, live, z, job)
    z[FREE] += milli_held(w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, job, 1)
    clear_nodes(w, rules, terms, job, 0 if stopped else 1, 1)
    z[EPOCH] += 1
    z[LONG_EPOCH] += 1


@kernel
def go(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, now: int) -> None:
    """A stopped job leaves. If nobody waits for its room any more it queues again at once."""
    leave(w, live, rules, terms, z, job, now)
    if live.fate.claim[job] == NONE:
        live.fate.kind[job] = PINNED if terms.mode == SUSPEND else PLAIN
        enqueue(w, live, terms, z, job, now)
