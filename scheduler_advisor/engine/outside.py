"""Nodes that fail, drain and come back, while jobs run on them."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.buckets import enter, leave
from scheduler_advisor.engine.heap import JOB_MASK
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.place import move_job, tasks_of
from scheduler_advisor.engine.ranks import Ranks, insert
from scheduler_advisor.engine.steps import milli_held, settle_interruption, stale
from scheduler_advisor.engine.waiting import count_in
from scheduler_advisor.engine.world import (
    ALL_GPU,
    DOWN,
    GPU,
    GROUP,
    NODE_FAILS,
    NODE_UP,
    RESERVATION_EDGE,
    S_SIZE,
    WHOLE,
    Book,
    Buckets,
    Limits,
    Nodes,
    Rows,
    Rules,
    Runs,
)


@leaf
def free_on(nodes: Nodes, shares: int, node: int) -> int:
    """Thousandths of GPUs that are free on the node."""
    if shares == 0:
        return nodes.table[node, GPU] * WHOLE
    total = 0
    for gpu in range(nodes.table[node, ALL_GPU]):
        total += nodes.share[node, gpu]
    return total


@kernel
def interrupt(
    nodes: Nodes,
    buckets: Buckets,
    shapes: Any,
    rows: Rows,
    runs: Runs,
    book: Book,
    limits: Limits,
    rules: Rules,
    job: int,
    now: int,
) -> None:
    """The attempt is over before its end; the job's nodes are free. It is not queued yet."""
    settle_interruption(rows, runs, job, now)
    move_job(nodes, buckets, shapes, rows, book, rules.most, rules.shares, job, 1)
    if rules.limits != 0:
        count_in(limits, shapes[rows.shape[job], S_SIZE], job, -1)


@leaf
def on_node(shapes: Any, rows: Rows, book: Book, job: int, node: int) -> bool:
    found = False
    for task in range(tasks_of(shapes, rows.shape[job])):
        if book.node[rows.place[job] + task] == node:
            found = True
            break
    return found


@kernel
def happen(
    nodes: Nodes,
    buckets: Buckets,
    shapes: Any,
    rows: Rows,
    runs: Runs,
    book: Book,
    limits: Limits,
    rules: Rules,
    queue: Ranks,
    rank: Any,
    ends: Any,
    size: int,
    kind: int,
    node: int,
    now: int,
) -> tuple[int, int, int]:
    """Lets one outside event happen: returns by how much free and held milli-GPUs change, and how
    many jobs were put back into the queue."""
    if kind == RESERVATION_EDGE:
        return 0, 0, 0
    table = nodes.table
    if kind == NODE_UP:
        table[node, DOWN] -= 1
        if table[node, DOWN] != 0:
            return 0, 0, 0
        enter(buckets, table[node, GROUP], table[node, GPU], rules.most, node)
        return free_on(nodes, rules.shares, node), 0, 0
    change = 0
    table[node, DOWN] += 1
    if table[node, DOWN] == 1:
        leave(buckets, table[node, GROUP], table[node, GPU], rules.most, node)
        change = -free_on(nodes, rules.shares, node)
    held = 0
    queued = 0
    for at in range(size if kind == NODE_FAILS else 0):
        job = ends[at] & JOB_MASK
        if stale(runs, ends[at]) or not on_node(shapes, rows, book, job, node):
            continue
        change += milli_held(nodes, shapes, rows, book, rules.plain_sizes, job, 1)
        held -= milli_held(nodes, shapes, rows, book, rules.plain_sizes, job, 0)
        interrupt(nodes, buckets, shapes, rows, runs, book, limits, rules, job, now)
        insert(queue, rank[job])
        queued += 1
    return change, held, queued
