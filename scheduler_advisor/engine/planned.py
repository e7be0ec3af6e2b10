"""Jobs in a plan of nodes: how long they stay, taking the nodes given, leaving the plan."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.place import take_general, take_plain, tasks_of
from scheduler_advisor.engine.plan import NOWHEN, book_job
from scheduler_advisor.engine.profile import Profile
from scheduler_advisor.engine.ranks import NONE, Ranks, next_rank
from scheduler_advisor.engine.steps import (
    believed_end,
    wall_of,
)
from scheduler_advisor.engine.world import (
    S_CPU,
    S_FLAGS,
    S_GPU,
    S_MEM,
    S_PLAIN,
    S_REST_CPU,
    S_REST_GPU,
    S_REST_MEM,
    S_TASKS,
    Book,
    Buckets,
    Nodes,
    Rows,
    Rules,
    Runs,
)

LENGTHS = 40  # powers of two that a job's length can lie between


@leaf
def power(length: int) -> int:
    """The power of two at or below `length`, at most LENGTHS - 1."""
    found = 0
    while length > 1 and found < LENGTHS - 1:
        length >>= 1
        found += 1
    return found


@leaf
def length_of(rows: Rows, runs: Runs, interruptible: int, job: int) -> int:
    """How long the plan keeps room for the job: at least a second."""
    return max(1, max(wall_of(rows, runs, interruptible, job), rows.limit[job]))


@kernel
def take_planned(
    nodes: Nodes, buckets: Buckets, shapes: Any, rows: Rows, book: Book, rules: Rules, job: int
) -> None:
    """The job takes the nodes that the plan gave it."""
    shape = rows.shape[job]
    entry = rows.place[job]
    for task in range(tasks_of(shapes, shape)):
        node = book.node[entry + task]
        rest = task == shapes[shape, S_TASKS]
        gpu = shapes[shape, S_REST_GPU if rest else S_GPU]
        cpu = shapes[shape, S_REST_CPU if rest else S_CPU]
        mem = shapes[shape, S_REST_MEM if rest else S_MEM]
        if shapes[shape, S_PLAIN] != 0:
            take_plain(nodes, buckets, rules.most, node, gpu, cpu, mem)
        else:
            take_general(
                nodes, buckets, rules.most, 0, node, gpu, cpu, mem, 0, shapes[shape, S_FLAGS], -1
            )


@kernel
def unplan(
    nodes: Nodes,
    shapes: Any,
    rows: Rows,
    runs: Runs,
    book: Book,
    profile: Profile,
    interruptible: int,
    planned: Any,
    job: int,
) -> None:
    """Takes a queued job's place out of the plan."""
    at = planned[job]
    if at != NOWHEN:
        until = at + length_of(rows, runs, interruptible, job)
        book_job(nodes, shapes, rows, book, profile, job, at, until, -1)
        planned[job] = NOWHEN


@kernel
def unplan_all(
    nodes: Nodes,
    shapes: Any,
    rows: Rows,
    runs: Runs,
    book: Book,
    profile: Profile,
    interruptible: int,
    planned: Any,
    queue: Ranks,
    at_rank: Any,
) -> None:
    rank = next_rank(queue, 0)
    while rank != NONE:
        unplan(nodes, shapes, rows, runs, book, profile, interruptible, planned, at_rank[rank])
        rank = next_rank(queue, rank + 1)


@leaf
def until_of(rows: Rows, runs: Runs, job: int) -> int:
    """Until when a running job is booked."""
    return max(believed_end(rows, runs, job), runs.start[job] + 1)
