"""Blocked jobs reserve whole nodes from the first instant at which they will fit."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.heap import JOB_BITS, JOB_MASK, pop, push
from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.live.tuples import BELIEVED, NOW, PLANS, Live, Terms
from scheduler_advisor.engine.place import tasks_of
from scheduler_advisor.engine.reserved import reserved_away
from scheduler_advisor.engine.steps import believed_end
from scheduler_advisor.engine.world import (
    ALL_CPU,
    ALL_GPU,
    ALL_MEM,
    CPU,
    DISTINCT,
    DOWN,
    EXCLUSIVE,
    GPU,
    GROUP,
    MEM,
    RUNS,
    S_CLASS,
    S_CPU,
    S_FLAGS,
    S_GPU,
    S_MEM,
    S_REST_CPU,
    S_REST_GPU,
    S_REST_MEM,
    S_TASKS,
    TASKS,
    Rules,
    World,
)

LATER = 1 << 60


@kernel
def release(w: World, room: Any, job: int) -> None:
    """The job's tasks have ended: `room` is free GPUs, CPU, memory and tasks per node."""
    shape = w.rows.shape[job]
    for task in range(tasks_of(w.shapes, shape)):
        node = w.book.node[w.rows.place[job] + task]
        rest = task == w.shapes[shape, S_TASKS]
        if w.shapes[shape, S_FLAGS] & EXCLUSIVE:
            room[node, 0] += w.nodes.table[node, ALL_GPU]
            room[node, 1] += w.nodes.table[node, ALL_CPU]
            room[node, 2] += w.nodes.table[node, ALL_MEM]
        else:
            room[node, 0] += w.shapes[shape, S_REST_GPU if rest else S_GPU]
            room[node, 1] += w.shapes[shape, S_REST_CPU if rest else S_CPU]
            room[node, 2] += w.shapes[shape, S_REST_MEM if rest else S_MEM]
        room[node, 3] -= 1


@leaf
def takes(w: World, room: Any, shape: int, node: int, first: int) -> int:
    """How many tasks of the shape, from `first` on, the node takes one after the other."""
    tasks = tasks_of(w.shapes, shape)
    flags = w.shapes[shape, S_FLAGS]
    gpu = room[node, 0]
    cpu = room[node, 1]
    mem = room[node, 2]
    holds = room[node, 3]
    task = first
    while task < tasks:
        rest = task == w.shapes[shape, S_TASKS]
        need_gpu = w.shapes[shape, S_REST_GPU if rest else S_GPU]
        need_cpu = w.shapes[shape, S_REST_CPU if rest else S_CPU]
        need_mem = w.shapes[shape, S_REST_MEM if rest else S_MEM]
        if need_gpu > gpu or need_cpu > cpu or need_mem > mem:
            break
        if flags & EXCLUSIVE and holds != 0:
            break
        if flags & DISTINCT and task > first:
            break
        if flags & EXCLUSIVE:
            gpu = 0
            cpu = 0
            mem = 0
        else:
            gpu -= need_gpu
            cpu -= need_cpu
            mem -= need_mem
        holds += 1
        task += 1
    return task - first


@kernel
def whole_nodes(
    w: World, rules: Rules, live: Live, room: Any, job: int, at: int, plan: int
) -> bool:
    """Covers in row `plan` of the reservations the nodes that would take the job's tasks at `at`,
    fewest free GPUs first; False and nothing covered if they do not suffice."""
    shape = w.rows.shape[job]
    cls = w.shapes[shape, S_CLASS]
    own = w.held.named[job]
    wanted = tasks_of(w.shapes, shape)
    until = at + w.rows.limit[job]
    placed = 0
    covers = w.held.covers
    covers[plan, :] = 0
    for free in range(rules.most + 1):
        for node in range(len(w.nodes.table)):
            if placed == wanted:
                return True
            if (
                room[node, 0] != free
                or w.nodes.table[node, DOWN] != 0
                or w.classes.member[cls, w.nodes.table[node, GROUP]] == 0
                or reserved_away(w.held, node, own, at, until)
            ):
                continue
            more = takes(w, room, shape, node, placed)
            if more > 0:
                covers[plan, node] = 1
                placed += more
    if placed == wanted:
        return True
    covers[plan, :] = 0
    return False


@kernel
def plan_job(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int) -> None:
    """Adds a reservation for the blocked job, if it will ever fit as things stand."""
    room = live.planned
    for node in range(len(w.nodes.table)):
        room[node, 0] = w.nodes.table[node, GPU]
        room[node, 1] = w.nodes.table[node, CPU]
        room[node, 2] = w.nodes.table[node, MEM]
        room[node, 3] = w.nodes.table[node, TASKS]
    heap = live.believed
    size = z[BELIEVED]
    plan = terms.first_plan + z[PLANS]
    at = z[NOW]
    popped = 0
    last = -1
    found = False
    fresh = True
    while True:
        while size > 0 and heap[0] >> JOB_BITS <= at:
            packed = heap[0]
            other = packed & JOB_MASK
            size = pop(heap, size)
            if (
                packed == last
                or w.runs.phase[other] != RUNS
                or believed_end(w.rows, w.runs, other) != packed >> JOB_BITS
            ):
                continue
            last = packed
            w.scratch[popped] = packed
            popped += 1
            fresh = True
            release(w, room, other)
        if fresh and whole_nodes(w, rules, live, room, job, at, plan):
            found = True
            break
        fresh = False
        following = heap[0] >> JOB_BITS if size > 0 else LATER
        for row in range(terms.first_plan, plan):
            if at < w.held.window[row, 1] <= following:
                following = w.held.window[row, 1]
                fresh = True
        if following == LATER:
            break
        at = following
    for one in range(popped):
        size = push(heap, size, w.scratch[one])
    z[BELIEVED] = size
    if found:
        w.held.window[plan, 0] = at
        w.held.window[plan, 1] = at + w.rows.limit[job]
        z[PLANS] += 1


@kernel
def forget_plans(w: World, terms: Terms, z: Any) -> None:
    """The pass is over: what it planned binds nobody."""
    for plan in range(terms.first_plan, terms.first_plan + z[PLANS]):
        w.held.window[plan, 0] = 0
        w.held.window[plan, 1] = 0
        w.held.covers[plan, :] = 0
    z[PLANS] = 0
