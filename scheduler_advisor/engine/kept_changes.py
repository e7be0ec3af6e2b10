"""What changed in a plan that is kept, and whom it may concern."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.kept import (
    CHANGED,
    GAINING,
    GAINS,
    LESS_SINCE,
    LESS_UNTIL,
    LISTED,
    MORE_SINCE,
    MORE_UNTIL,
    STAMP,
    T_STAMP,
    T_TIME,
    Kept,
)
from scheduler_advisor.engine.place import tasks_of
from scheduler_advisor.engine.plan import NOWHEN
from scheduler_advisor.engine.world import (
    GROUP,
    S_CLASS,
    S_CPU,
    S_GPU,
    S_MEM,
    S_REST_CPU,
    S_REST_GPU,
    S_REST_MEM,
    Book,
    Classes,
    Nodes,
    Rows,
)


@leaf
def changed(kept: Kept, node: int, since: int, until: int, more: int, packs: int) -> None:
    """More (or less) is free on the node during [since, until) than later ranks have seen. Where
    jobs are packed, they are drawn to nodes with less room too."""
    spot = kept.spot
    if spot[node, LISTED] == 0:
        spot[node, LISTED] = 1
        kept.listed[kept.number[CHANGED]] = node
        kept.number[CHANGED] += 1
    if spot[node, GAINS] == 0 and (more != 0 or packs != 0):
        spot[node, GAINS] = 1
        kept.gains[kept.number[GAINING]] = node
        kept.number[GAINING] += 1
    first = MORE_SINCE if more != 0 else LESS_SINCE
    spot[node, first] = min(spot[node, first], since)
    spot[node, first + 1] = max(spot[node, first + 1], until)
    kept.number[STAMP] += 1


@kernel
def all_seen(kept: Kept) -> None:
    """Everybody has seen every change."""
    for at in range(kept.number[CHANGED]):
        node = kept.listed[at]
        kept.spot[node, LISTED] = 0
        kept.spot[node, GAINS] = 0
        kept.spot[node, MORE_SINCE] = NOWHEN
        kept.spot[node, LESS_SINCE] = NOWHEN
        kept.spot[node, MORE_UNTIL] = -NOWHEN
        kept.spot[node, LESS_UNTIL] = -NOWHEN
    kept.number[CHANGED] = 0
    kept.number[GAINING] = 0
    kept.number[STAMP] += 1


@leaf
def job_changed(
    kept: Kept, shapes: Any, rows: Rows, book: Book, job: int, since: int, until: int, more: int,
    packs: int,
) -> None:  # fmt: skip
    """`changed` on all nodes of the job."""
    for task in range(tasks_of(shapes, rows.shape[job])):
        changed(kept, book.node[rows.place[job] + task], since, until, more, packs)


@leaf
def seen_since(kept: Kept, node: int, packs: int) -> int:
    """When what may draw a job to the node begins: more room, and where jobs are packed less."""
    since = kept.spot[node, MORE_SINCE]
    return min(since, kept.spot[node, LESS_SINCE]) if packs != 0 else since


@leaf
def seen_until(kept: Kept, node: int, packs: int) -> int:
    """When it ends."""
    until = kept.spot[node, MORE_UNTIL]
    return max(until, kept.spot[node, LESS_UNTIL]) if packs != 0 else until


@leaf
def least_gpu(shapes: Any, shape: int) -> int:
    """What the smallest of a job's tasks asks for."""
    rest = shapes[shape, S_REST_GPU]
    return min(rest, shapes[shape, S_GPU]) if rest != 0 else shapes[shape, S_GPU]


@leaf
def least_cpu(shapes: Any, shape: int) -> int:
    rest = shapes[shape, S_REST_GPU]
    cpu = shapes[shape, S_CPU]
    return min(cpu, shapes[shape, S_REST_CPU]) if rest != 0 else cpu


@leaf
def least_mem(shapes: Any, shape: int) -> int:
    rest = shapes[shape, S_REST_GPU]
    mem = shapes[shape, S_MEM]
    return min(mem, shapes[shape, S_REST_MEM]) if rest != 0 else mem


@kernel
def soonest_of(
    nodes: Nodes, classes: Classes, shapes: Any, kept: Kept, shape: int, packs: int
) -> int:
    """Before this instant no task of the shape gains from what changed."""
    if kept.soonest[shape, T_STAMP] == kept.number[STAMP]:
        return kept.soonest[shape, T_TIME]
    found = NOWHEN
    cls = shapes[shape, S_CLASS]
    gpu = least_gpu(shapes, shape)
    for one in range(kept.number[GAINING]):
        node = kept.gains[one]
        at = kept.alone[gpu, node]
        if at >= found or at >= seen_until(kept, node, packs):
            continue
        if classes.member[cls, nodes.table[node, GROUP]] != 0:
            found = at
    kept.soonest[shape, T_STAMP] = kept.number[STAMP]
    kept.soonest[shape, T_TIME] = found
    return found


@leaf
def touched(
    kept: Kept, shapes: Any, rows: Rows, book: Book, job: int, since: int, until: int
) -> bool:
    """Did something change where and when the job has its place?"""
    spot = kept.spot
    for task in range(tasks_of(shapes, rows.shape[job])):
        node = book.node[rows.place[job] + task]
        if spot[node, LISTED] != 0 and (
            (spot[node, MORE_SINCE] < until and spot[node, MORE_UNTIL] > since)
            or (spot[node, LESS_SINCE] < until and spot[node, LESS_UNTIL] > since)
        ):
            return True
    return False
