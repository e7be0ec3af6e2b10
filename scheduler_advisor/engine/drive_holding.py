"""The driver loop with gang scheduling off: tasks start as they fit and hold what they got.

A job works once it has all its tasks. Jobs that hold may block each other for ever: such a
deadlock is reported when it begins, and ends when a job's patience (`gang.timeout_s`) does: it
gives everything back and goes to the end of its priority. Where nothing else happens (no start, no
end, no arrival, no change of a node) it does so three times; more of the same would change
nothing, and a gang that no longer fits would do it for ever.
"""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.drive import (
    EVENTS,
    EXAMINED,
    FREE,
    HELD,
    LAST,
    NO_BACKFILL,
    PASSES,
    QUEUED,
    TOTALS,
    WAITING,
)
from scheduler_advisor.engine.heap import JOB_BITS, JOB_MASK, pop, push
from scheduler_advisor.engine.holding import (
    Patience,
    empty_patience,
    give_back,
    held_so_far,
    line_up,
    may_give_up,
    step_out,
    stuck,
    take_more,
    task_milli,
)
from scheduler_advisor.engine.jit import kernel
from scheduler_advisor.engine.outside import happen
from scheduler_advisor.engine.place import move_job, tasks_of
from scheduler_advisor.engine.ranks import NONE, insert, next_rank, remove
from scheduler_advisor.engine.steps import LATER, begin, finish, milli_held, stale, swept
from scheduler_advisor.engine.waiting import count_in, free_children, held_back
from scheduler_advisor.engine.world import (
    NODE_FAILS,
    S_CLASS,
    S_SIZE,
    Rules,
    World,
)

HOLDING = TOTALS  # entry of `totals`: milli-GPU-seconds held without working
DEADLOCKS = TOTALS + 1
HOLDING_TOTALS = TOTALS + 2


@kernel
def drive_holding(w: World, rules: Rules, p: Patience, totals: Any) -> None:
    """Replays all jobs; see the module."""
    rows, runs, shapes, nodes, book = w.rows, w.runs, w.shapes, w.nodes, w.book
    jobs = len(w.arrival)
    interruptible, plain = rules.interruptible, rules.plain_sizes
    selective = rules.limits != 0
    now = -(1 << 60)
    arrived = 0
    happened = 0
    ends = 0
    line = 0
    free_milli = totals[FREE]
    held_milli = 0
    events = 0
    passes = 0
    examined_sum = 0
    held_sum = 0
    queue_sum = 0
    holding = 0
    deadlocks = 0
    deadlocked = False
    stamp = 0
    news = 0  # what happened, jobs giving up apart
    while True:
        while ends > 0 and stale(runs, w.ends[0]):
            ends = pop(w.ends, ends)
        at = w.eligible[w.arrival[arrived]] if arrived < jobs else LATER
        if happened < len(w.outside):
            at = min(at, w.outside[happened, 0])
        if ends > 0:
            at = min(at, w.ends[0] >> JOB_BITS)
        if rules.gang_timeout != 0:
            for place in range(line):
                if may_give_up(p, p.line[place], news):
                    at = min(at, p.since[p.line[place]] + rules.gang_timeout)
        if at == LATER:
            break
        at = max(at, now)
        held_sum += held_milli * (at - now)
        queue_sum += line * (at - now)
        now = at
        while ends > 0 and w.ends[0] >> JOB_BITS <= now:
            packed = w.ends[0]
            job = packed & JOB_MASK
            ends = pop(w.ends, ends)
            if stale(runs, packed):
                continue
            free_milli += milli_held(nodes, shapes, rows, book, plain, job, 1)
            held_milli -= milli_held(nodes, shapes, rows, book, plain, job, 0)
            finish(rows, runs, interruptible, job)
            news += 1
            move_job(nodes, w.buckets, shapes, rows, book, rules.most, rules.shares, job, 1)
            if rules.limits != 0:
                count_in(w.limits, shapes[rows.shape[job], S_SIZE], job, -1)
            events += 1
            if rules.dependencies != 0:
                free_children(w.family, rows, w.queue, w.rank, w.eligible, job, now)
        while happened < len(w.outside) and w.outside[happened, 0] <= now:
            kind = w.outside[happened, 1]
            node = w.outside[happened, 2]
            change, less, _ = happen(
                nodes, w.buckets, shapes, rows, runs, book, w.limits, rules, w.queue, w.rank,
                w.ends, ends, kind, node, now,
            )  # fmt: skip
            free_milli += change
            held_milli += less
            happened += 1
            events += 1
            news += 1
            for place in range(line if kind == NODE_FAILS else 0):
                job = p.line[place]
                hit = False
                for task in range(p.tasks[job]):
                    hit = hit or book.node[rows.place[job] + task] == node
                if hit:
                    holding += held_so_far(w, p, job, now)
                    less = 0
                    for task in range(p.tasks[job]):
                        less += task_milli(w, job, task)
                    held_milli -= less
                    free_milli += give_back(w, rules, p, job)
        for job in range(len(rows.run) if rules.gang_timeout != 0 else 0):
            if may_give_up(p, job, news) and p.since[job] + rules.gang_timeout <= now:
                p.gave[job, 0] = p.gave[job, 0] + 1 if p.gave[job, 1] == news else 1
                p.gave[job, 1] = news
                holding += held_so_far(w, p, job, now)
                for task in range(p.tasks[job]):
                    held_milli -= task_milli(w, job, task)
                free_milli += give_back(w, rules, p, job)
                line = step_out(p, line, job)
                p.turn[job] = now
                line = line_up(p, line, job)
        while arrived < jobs and w.eligible[w.arrival[arrived]] <= now:
            job = w.arrival[arrived]
            arrived += 1
            events += 1
            if rules.dependencies != 0 and w.family.waits_for[job] > 0:
                continue
            news += 1
            insert(w.queue, w.rank[job])
        # Those whom arrivals, ends and failures have put into the common queue.
        rank = next_rank(w.queue, 0)
        while rank != NONE:
            remove(w.queue, rank)
            line = line_up(p, line, w.at_rank[rank])
            rank = next_rank(w.queue, rank + 1)

        passes += 1
        for part in range(rules.components):
            behind = -1
            place = 0
            while place < line:
                job = p.line[place]
                place += 1
                shape = rows.shape[job]
                if w.component[shapes[shape, S_CLASS]] != part:
                    continue
                examined_sum += 1
                size = shapes[shape, S_SIZE]
                if behind >= 0:
                    behind += 1
                if selective and held_back(w.held, w.limits, rows, size, 0, rules.limits, job, now):
                    continue
                if behind >= 0:
                    if rules.backfill == NO_BACKFILL or (rules.depth != 0 and behind > rules.depth):
                        break
                    if rules.max_limit != 0 and rows.limit[job] > rules.max_limit:
                        continue
                stamp += 1
                taken = take_more(w, rules, p, job, now, free_milli, stamp)
                free_milli -= taken
                held_milli += taken
                if p.tasks[job] == tasks_of(shapes, shape):
                    holding += held_so_far(w, p, job, now)
                    p.tasks[job] = 0
                    end = begin(rows, runs, interruptible, job, now)
                    news += 1
                    if rules.limits != 0:
                        count_in(w.limits, size, job, 1)
                    if ends + 1 >= len(w.ends):
                        ends = swept(rows, runs, w.ends, ends, 0)
                    ends = push(w.ends, ends, (end << JOB_BITS) | job)
                    place -= 1
                    line = step_out(p, line, job)
                elif behind < 0:
                    behind = 0
        count, held = stuck(w, rules, p, line, ends, now, stamp)
        stamp += line + 1
        if count > 0 and not deadlocked and deadlocks < len(p.deadlocks):
            p.deadlocks[deadlocks, 0] = now
            p.deadlocks[deadlocks, 1] = count
            p.deadlocks[deadlocks, 2] = held
            deadlocks += 1
        deadlocked = count > 0
    for place in range(line):
        holding += held_so_far(w, p, p.line[place], now)
    totals[FREE] = free_milli
    totals[EVENTS] = events
    totals[PASSES] = passes
    totals[HELD] = held_sum
    totals[QUEUED] = queue_sum
    totals[WAITING] = line
    totals[LAST] = now
    totals[EXAMINED] = examined_sum
    totals[HOLDING] = holding
    totals[DEADLOCKS] = deadlocks


__all__ = ["DEADLOCKS", "HOLDING", "HOLDING_TOTALS", "drive_holding", "empty_patience"]
