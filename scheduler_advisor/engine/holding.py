"""Jobs that hold tasks without working: their queue, taking more, giving back, being stuck."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduler_advisor.engine.heap import JOB_MASK
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.place import move_job, move_task, tasks_of
from scheduler_advisor.engine.placing import place_from
from scheduler_advisor.engine.steps import stale
from scheduler_advisor.engine.world import (
    ALL_GPU,
    DOWN,
    EXCLUSIVE,
    MARK,
    S_FLAGS,
    S_GPU,
    S_MILLI,
    S_REST_GPU,
    S_TASKS,
    WHOLE,
    Rules,
    World,
)

MOST_TURNS = 3  # times that a job gives up while nothing else happens


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
    size = len(world.rows.run)
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
