"""The driver loop with gang scheduling off: tasks start as they fit and hold what they got.

A job works once it has all its tasks. Jobs that hold may block each other for ever: such a
deadlock is reported when it begins, and ends when a job's patience (`gang.timeout_s`) does: it
gives everything back and goes to the end of its priority. Where nothing else happens (no start, no
end, no arrival, no change of a node) it does so three times; more of the same would change
nothing, and a gang that no longer fits would do it for ever.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

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
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.outside import happen
from scheduler_advisor.engine.place import move_job, move_task, tasks_of
from scheduler_advisor.engine.placing import place_from
from scheduler_advisor.engine.ranks import NONE, insert, next_rank, remove
from scheduler_advisor.engine.steps import LATER, begin, finish, milli_held, stale, swept
from scheduler_advisor.engine.waiting import count_in, free_children, held_back
from scheduler_advisor.engine.world import (
    ALL_GPU,
    DOWN,
    EXCLUSIVE,
    MARK,
    NODE_FAILS,
    S_CLASS,
    S_FLAGS,
    S_GPU,
    S_MILLI,
    S_REST_GPU,
    S_SIZE,
    S_TASKS,
    WHOLE,
    Rules,
    World,
)

HOLDING = TOTALS  # entry of `totals`: milli-GPU-seconds held without working
MOST_TURNS = 3  # times that a job gives up while nothing else happens
DEADLOCKS = TOTALS + 1
HOLDING_TOTALS = TOTALS + 2


class Patience(NamedTuple):
    """Per job: tasks held while it does not work, since when it holds, its place in the order
    (`band`, `turn`, index), how often it has given up since what news, the queue; per task: since
    when it is held; deadlocks found."""

    tasks: Any
    since: Any
    band: Any
    turn: Any
    gave: Any
    line: Any
    task_since: Any
    deadlocks: Any


def empty_patience(world: World, submit: Any, band: Any) -> Patience:
    """Nobody holds anything."""
    size = len(world.arrival)
    return Patience(
        tasks=np.zeros(size, np.int64),
        since=np.zeros(size, np.int64),
        band=band,
        turn=submit.copy(),
        gave=np.zeros((size, 2), np.int64),
        line=np.zeros(size + 1, np.int64),
        task_since=np.zeros(len(world.book.node) + 1, np.int64),
        deadlocks=np.zeros((2 * size + 16, 3), np.int64),
    )


@leaf
def task_milli(w: World, job: int, task: int) -> int:
    """Thousandths of GPUs that one placed task holds."""
    shape = w.rows.shape[job]
    if w.shapes[shape, S_FLAGS] & EXCLUSIVE:
        return w.nodes.table[w.book.node[w.rows.place[job] + task], ALL_GPU] * WHOLE
    if task == w.shapes[shape, S_TASKS]:
        return w.shapes[shape, S_REST_GPU] * WHOLE
    return w.shapes[shape, S_GPU] * WHOLE + w.shapes[shape, S_MILLI]


@leaf
def may_give_up(p: Patience, job: int, news: int) -> bool:
    """Holds tasks, and has not given up too often since anything else happened."""
    return p.tasks[job] > 0 and (p.gave[job, 1] != news or p.gave[job, 0] < MOST_TURNS)


@kernel
def line_up(p: Patience, size: int, job: int) -> int:
    """Puts the job into the queue at its place; returns the new size."""
    at = size
    while at > 0:
        other = p.line[at - 1]
        if p.band[other] < p.band[job]:
            break
        if p.band[other] == p.band[job]:
            if p.turn[other] < p.turn[job]:
                break
            if p.turn[other] == p.turn[job] and other < job:
                break
        p.line[at] = other
        at -= 1
    p.line[at] = job
    return size + 1


@kernel
def step_out(p: Patience, size: int, job: int) -> int:
    """Takes the job out of the queue; returns the new size."""
    at = 0
    while p.line[at] != job:
        at += 1
    for later in range(at, size - 1):
        p.line[later] = p.line[later + 1]
    return size - 1


@kernel
def held_so_far(w: World, p: Patience, job: int, now: int) -> int:
    """Milli-GPU-seconds that the job has held without working."""
    total = 0
    for task in range(p.tasks[job]):
        total += task_milli(w, job, task) * (now - p.task_since[w.rows.place[job] + task])
    return total


@kernel
def give_back(w: World, rules: Rules, p: Patience, job: int) -> int:
    """The job holds nothing any more; returns the milli-GPUs that are free for it."""
    freed = 0
    for task in range(p.tasks[job]):
        if w.nodes.table[w.book.node[w.rows.place[job] + task], DOWN] == 0:
            freed += task_milli(w, job, task)
        move_task(
            w.nodes, w.buckets, w.shapes, w.book, rules.most, rules.shares, w.rows.place[job],
            w.rows.shape[job], task, 1,
        )  # fmt: skip
    p.tasks[job] = 0
    return freed


@kernel
def take_more(
    w: World, rules: Rules, p: Patience, job: int, now: int, free_milli: int, stamp: int
) -> int:
    """Takes task after task until one does not fit; returns the milli-GPUs taken."""
    shape = w.rows.shape[job]
    taken = 0
    entry = w.rows.place[job]
    for task in range(p.tasks[job]):
        w.nodes.table[w.book.node[entry + task], MARK] = stamp
    while p.tasks[job] < tasks_of(w.shapes, shape):
        task = p.tasks[job]
        size = w.shapes[shape, S_GPU] * WHOLE + w.shapes[shape, S_MILLI]
        if task == w.shapes[shape, S_TASKS]:
            size = w.shapes[shape, S_REST_GPU] * WHOLE
        if free_milli - taken - size < rules.headroom_milli:
            break
        placed = place_from(
            w.nodes, w.buckets, w.shadow, w.shapes, w.classes, w.held, w.rows, w.runs, w.book,
            rules, job, now, stamp, 0, task, 1,
        )  # fmt: skip
        if placed == task:
            break
        if task == 0:
            p.since[job] = now
        p.task_since[entry + task] = now
        p.tasks[job] = task + 1
        taken += task_milli(w, job, task)
    return taken


@kernel
def stuck(
    w: World, rules: Rules, p: Patience, line: int, ends: int, now: int, stamp: int
) -> tuple[int, int]:
    """If jobs hold and none of them could be completed even when all running jobs had ended: how
    many they are and the milli-GPUs that they hold; else 0."""
    holders = 0
    held = 0
    for at in range(line):
        job = p.line[at]
        if p.tasks[job] > 0:
            holders += 1
            for task in range(p.tasks[job]):
                held += task_milli(w, job, task)
    if holders == 0:
        return 0, 0
    lifted = 0
    for at in range(ends):
        job = w.ends[at] & JOB_MASK
        if not stale(w.runs, w.ends[at]):
            again = False
            for before in range(lifted):
                again = again or w.scratch[before] == job
            if not again:
                w.scratch[lifted] = job
                lifted += 1
    for at in range(lifted):
        move_job(
            w.nodes, w.buckets, w.shapes, w.rows, w.book, rules.most, rules.shares,
            w.scratch[at], 1,
        )  # fmt: skip
    possible = False
    for at in range(line):
        job = p.line[at]
        if p.tasks[job] == 0 or possible:
            continue
        shape = w.rows.shape[job]
        entry = w.rows.place[job]
        stamp += 1
        for task in range(p.tasks[job]):
            w.nodes.table[w.book.node[entry + task], MARK] = stamp
        wanted = tasks_of(w.shapes, shape)
        placed = place_from(
            w.nodes, w.buckets, w.shadow, w.shapes, w.classes, w.held, w.rows, w.runs, w.book,
            rules, job, now, stamp, 0, p.tasks[job], wanted,
        )  # fmt: skip
        for task in range(p.tasks[job], placed):
            move_task(
                w.nodes, w.buckets, w.shapes, w.book, rules.most, rules.shares, entry, shape,
                task, 1,
            )  # fmt: skip
        possible = placed == wanted
    for at in range(lifted):
        move_job(
            w.nodes, w.buckets, w.shapes, w.rows, w.book, rules.most, rules.shares,
            w.scratch[at], -1,
        )  # fmt: skip
    return (0, 0) if possible else (holders, held)


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
        for job in range(jobs if rules.gang_timeout != 0 else 0):
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
            if rows.shape[job] < 0 or (rules.dependencies != 0 and w.family.waits_for[job] > 0):
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
