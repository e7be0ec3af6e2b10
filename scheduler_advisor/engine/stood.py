"""Jobs that ran when a replay begins start on their own nodes, where these have room."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.choose import shared_room
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.place import move_task, take_general, take_plain, tasks_of
from scheduler_advisor.engine.world import (
    CPU,
    DOWN,
    EXCLUSIVE,
    GPU,
    MEM,
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
    TASKS,
    Book,
    Buckets,
    Nodes,
    Rows,
    Rules,
)

Ints = NDArray[np.int64]


def before_of(jobs: Jobs, cluster: Cluster, places: Ints) -> Ints:
    """Per task the node on which it ran before; empty where no job did."""
    stood = np.flatnonzero(np.array([bool(name) for name in jobs.stood_on.names])[
        jobs.stood_on.codes])  # fmt: skip
    if not len(stood):
        return np.zeros(0, np.int64)
    before = np.full(int(places[-1]), -1, np.int64)
    for job in stood.tolist():
        nodes = [cluster.index.get(name, -1) for name in jobs.stood_on[job].split("|")]
        if len(nodes) == places[job + 1] - places[job]:
            before[places[job] : places[job + 1]] = nodes
    return before


@leaf
def stood(rows: Rows, book: Book, job: int, guard: int) -> bool:
    """Did the job run when the replay began, and is this its first start?"""
    return len(book.before) != 0 and guard == 0 and book.before[rows.place[job]] >= 0


@kernel
def put_back(
    nodes: Nodes,
    buckets: Buckets,
    shapes: Any,
    rows: Rows,
    book: Book,
    rules: Rules,
    job: int,
) -> int:
    """A job that ran when the replay began has its nodes again: 1; 0: they have no room for it.
    Either way it is asked once."""
    shape = rows.shape[job]
    entry = rows.place[job]
    flags = shapes[shape, S_FLAGS]
    wanted = tasks_of(shapes, shape)
    placed = 0
    for task in range(wanted):
        node = book.before[entry + task]
        book.before[entry + task] = -1
        rest = 1 if task == shapes[shape, S_TASKS] else 0
        gpu = shapes[shape, S_REST_GPU if rest else S_GPU]
        cpu = shapes[shape, S_REST_CPU if rest else S_CPU]
        mem = shapes[shape, S_REST_MEM if rest else S_MEM]
        milli = 0 if rest else shapes[shape, S_MILLI]
        if (
            placed < task
            or node < 0
            or nodes.table[node, DOWN] != 0
            or nodes.table[node, GPU] < gpu
            or nodes.table[node, CPU] < cpu
            or nodes.table[node, MEM] < mem
            or (flags & EXCLUSIVE and nodes.table[node, TASKS] != 0)
            or (milli != 0 and not shared_room(nodes, node, milli, 0))
        ):
            continue
        book.node[entry + task] = node
        if shapes[shape, S_PLAIN] != 0:
            take_plain(nodes, buckets, rules.most, node, gpu, cpu, mem)
        else:
            gpus = take_general(
                nodes, buckets, rules.most, rules.shares, node, gpu, cpu, mem, milli, flags, -1
            )
            if rules.shares != 0:
                book.gpu[entry + task] = gpus
        placed += 1
    if placed == wanted:
        return 1
    for task in range(placed):
        move_task(nodes, buckets, shapes, book, rules.most, rules.shares, entry, shape, task, 1)
    return 0
