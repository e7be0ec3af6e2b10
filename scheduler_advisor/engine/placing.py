"""Placing a whole job, or nothing of it."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.choose import choose, walk_plain
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.place import (
    move_job,
    move_task,
    take_general,
    take_plain,
    tasks_of,
)
from scheduler_advisor.engine.scored import GPU_BITS, GPU_MASK, choose_scored
from scheduler_advisor.engine.shadow import SH_REST_SLACK, SH_SLACK, cost_of
from scheduler_advisor.engine.stood import put_back, stood
from scheduler_advisor.engine.world import (
    BEST_FIT,
    CONSOLIDATE,
    FGD,
    M_STARTS,
    MARK,
    RANDOM,
    S_CLASS,
    S_CPU,
    S_FLAGS,
    S_GPU,
    S_MEM,
    S_MILLI,
    S_PLAIN,
    S_REST_CPU,
    S_REST_GPU,
    S_REST_MEM,
    S_TASKS,
    Book,
    Buckets,
    Classes,
    Held,
    Nodes,
    Rows,
    Rules,
    Runs,
    Shadow,
)


@leaf
def may_fit(buckets: Buckets, classes: Classes, shapes: Any, most: int, shape: int) -> bool:
    """False where free whole GPUs alone forbid the job."""
    gpu = shapes[shape, S_GPU]
    if gpu == 0:
        return True
    cls = shapes[shape, S_CLASS]
    room = 0
    for at in range(classes.start[cls], classes.start[cls + 1]):
        first = classes.groups[at] * (most + 1)
        for free in range(gpu, most + 1):
            if buckets.count[first + free] != 0:
                room += buckets.count[first + free] * (free // gpu)
                if room >= shapes[shape, S_TASKS]:
                    return True
    return False


@kernel
def place_from(
    nodes: Nodes,
    buckets: Buckets,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rows: Rows,
    runs: Runs,
    book: Book,
    rules: Rules,
    job: int,
    now: int,
    stamp: int,
    guard: int,
    first: int,
    most_tasks: int,
) -> int:
    """Places the tasks from `first` on, one by one; returns how many are placed in all. What was
    placed stays: the caller undoes it, or lets the job hold it."""
    shape = rows.shape[job]
    cls = shapes[shape, S_CLASS]
    flags = shapes[shape, S_FLAGS]
    entry = rows.place[job]
    attempt = runs.more[job, M_STARTS] if rules.interruptible != 0 else 0
    own = held.named[job] if rules.reservations != 0 else -1
    until = now + rows.limit[job]
    for task in range(first, min(tasks_of(shapes, shape), first + most_tasks)):
        rest = 1 if task == shapes[shape, S_TASKS] else 0
        gpu = shapes[shape, S_REST_GPU if rest else S_GPU]
        cpu = shapes[shape, S_REST_CPU if rest else S_CPU]
        mem = shapes[shape, S_REST_MEM if rest else S_MEM]
        milli = 0 if rest else shapes[shape, S_MILLI]
        on_gpu = -1
        if rules.placement >= FGD:
            node = choose_scored(
                nodes, shadow, shapes, classes, held, rules, job, own, cls, 2 * shape + rest, gpu,
                cpu, mem, milli, flags, now, until, stamp, guard, attempt, task,
            )  # fmt: skip
            on_gpu = (node & GPU_MASK) - 1
            node >>= GPU_BITS
        else:
            node = choose(
                nodes, buckets, shadow, shapes, classes, held, rules, job, own, cls, gpu, cpu,
                mem, milli, flags, now, until, stamp, guard, attempt, task, rest,
            )  # fmt: skip
        if node < 0:
            return task
        if guard != 0:
            main_cost, rest_cost = cost_of(
                nodes, shadow, shapes, classes, held, rules, node, gpu, cpu, mem, milli, flags,
                on_gpu,
            )  # fmt: skip
            shadow.number[SH_SLACK] -= main_cost
            shadow.number[SH_REST_SLACK] -= rest_cost
        nodes.table[node, MARK] = stamp
        book.node[entry + task] = node
        if shapes[shape, S_PLAIN] != 0:
            take_plain(nodes, buckets, rules.most, node, gpu, cpu, mem)
        else:
            gpus = take_general(
                nodes, buckets, rules.most, rules.shares, node, gpu, cpu, mem, milli, flags,
                on_gpu,
            )  # fmt: skip
            if rules.shares != 0:
                book.gpu[entry + task] = gpus
    return min(tasks_of(shapes, shape), first + most_tasks)


@kernel
def place_general(
    nodes: Nodes,
    buckets: Buckets,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rows: Rows,
    runs: Runs,
    book: Book,
    rules: Rules,
    job: int,
    now: int,
    stamp: int,
    guard: int,
) -> int:
    """Any job, all or nothing; see `place`."""
    shape = rows.shape[job]
    slack = shadow.number[SH_SLACK]
    rest_slack = shadow.number[SH_REST_SLACK]
    wanted = tasks_of(shapes, shape)
    placed = place_from(
        nodes, buckets, shadow, shapes, classes, held, rows, runs, book, rules, job, now, stamp,
        guard, 0, wanted,
    )  # fmt: skip
    if placed == wanted:
        return 1
    for task in range(placed):
        move_task(
            nodes, buckets, shapes, book, rules.most, rules.shares, rows.place[job], shape, task, 1
        )
    shadow.number[SH_SLACK] = slack
    shadow.number[SH_REST_SLACK] = rest_slack
    if wanted > 1 and (guard != 0 or placed == shapes[shape, S_TASKS]):
        return -1
    return 0


@kernel
def fits_alone(
    nodes: Nodes,
    buckets: Buckets,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rows: Rows,
    runs: Runs,
    book: Book,
    rules: Rules,
    job: int,
    stamp: int,
) -> bool:
    """Would the policy find room for the job if it had the cluster to itself, as it now has?"""
    placed = place_general(
        nodes, buckets, shadow, shapes, classes, held, rows, runs, book, rules, job, -(1 << 60),
        stamp, 0,
    )  # fmt: skip
    if placed == 1:
        move_job(nodes, buckets, shapes, rows, book, rules.most, rules.shares, job, 1)
    return placed == 1


@leaf
def place(
    nodes: Nodes,
    buckets: Buckets,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rows: Rows,
    runs: Runs,
    book: Book,
    rules: Rules,
    job: int,
    now: int,
    stamp: int,
    guard: int,
) -> int:
    """Places the whole job or nothing of it: 1 placed; 0 it does not fit, nor will it when less
    is free; -1 it does not fit this way, though with other choices it might have."""
    shape = rows.shape[job]
    if stood(rows, book, job, guard) and put_back(
        nodes, buckets, shapes, rows, book, rules, job
    ) == 1:  # fmt: skip
        return 1
    one = shapes[shape, S_TASKS] == 1 and shapes[shape, S_REST_GPU] == 0
    if one and shapes[shape, S_PLAIN] != 0 and guard == 0 and rules.placement != RANDOM:
        rule = BEST_FIT if rules.placement == CONSOLIDATE else rules.placement
        gpu = shapes[shape, S_GPU]
        cpu = shapes[shape, S_CPU]
        mem = shapes[shape, S_MEM]
        node = walk_plain(
            nodes, buckets, classes, rules.most, rule, shapes[shape, S_CLASS], gpu, cpu, mem
        )
        if node < 0:
            return 0
        take_plain(nodes, buckets, rules.most, node, gpu, cpu, mem)
        book.node[rows.place[job]] = node
        return 1
    if not may_fit(buckets, classes, shapes, rules.most, shape):
        return 0
    return place_general(
        nodes, buckets, shadow, shapes, classes, held, rows, runs, book, rules, job, now, stamp,
        guard,
    )  # fmt: skip
