"""Casting EASY's shadow: letting running jobs end in thought until the head fits."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.heap import JOB_BITS, JOB_MASK, pop, push
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.place import tasks_of
from scheduler_advisor.engine.shadow import (
    NEVER,
    SH_AT,
    SH_FREE,
    SH_HEAD,
    SH_LIMIT,
    SH_REST_SLACK,
    SH_SHAPE,
    SH_SLACK,
    SH_STAMP,
    counts,
    room,
)
from scheduler_advisor.engine.steps import believed_end, milli_held
from scheduler_advisor.engine.world import (
    ALL_CPU,
    ALL_GPU,
    ALL_MEM,
    ENDS_CPU,
    ENDS_GPU,
    ENDS_MEM,
    ENDS_TASKS,
    EXCLUSIVE,
    RUNS,
    S_CPU,
    S_FLAGS,
    S_GPU,
    S_MEM,
    S_MILLI,
    S_REST_CPU,
    S_REST_GPU,
    S_REST_MEM,
    S_SIZE,
    S_TASKS,
    STAMP,
    WHOLE,
    Book,
    Classes,
    Held,
    Nodes,
    Rows,
    Rules,
    Runs,
    Shadow,
)


@leaf
def release_at_shadow(
    nodes: Nodes,
    shadow: Shadow,
    shapes: Any,
    rows: Rows,
    book: Book,
    shares: int,
    job: int,
    sign: int,
) -> None:
    """The job's tasks will (+1) or will no longer (-1) have ended by the shadow: room that is
    counted apart from what is free now. The head's room is not touched."""
    shape = rows.shape[job]
    main = shapes[shape, S_TASKS]
    entry = rows.place[job]
    for task in range(tasks_of(shapes, shape)):
        node = book.node[entry + task]
        if nodes.table[node, STAMP] != shadow.number[SH_STAMP]:
            nodes.table[node, STAMP] = shadow.number[SH_STAMP]
            nodes.table[node, ENDS_GPU] = 0
            nodes.table[node, ENDS_CPU] = 0
            nodes.table[node, ENDS_MEM] = 0
            nodes.table[node, ENDS_TASKS] = 0
            if shares != 0:
                shadow.share[node, :] = 0
        rest = task == main
        if shapes[shape, S_FLAGS] & EXCLUSIVE:
            nodes.table[node, ENDS_GPU] += sign * nodes.table[node, ALL_GPU]
            nodes.table[node, ENDS_CPU] += sign * nodes.table[node, ALL_CPU]
            nodes.table[node, ENDS_MEM] += sign * nodes.table[node, ALL_MEM]
        else:
            nodes.table[node, ENDS_GPU] += sign * shapes[shape, S_REST_GPU if rest else S_GPU]
            nodes.table[node, ENDS_CPU] += sign * shapes[shape, S_REST_CPU if rest else S_CPU]
            nodes.table[node, ENDS_MEM] += sign * shapes[shape, S_REST_MEM if rest else S_MEM]
        nodes.table[node, ENDS_TASKS] -= sign
        if shares != 0:
            _release_shares(nodes, shadow, shapes, shape, node, book.gpu[entry + task], rest, sign)


@kernel
def _release_shares(
    nodes: Nodes,
    shadow: Shadow,
    shapes: Any,
    shape: int,
    node: int,
    held: int,
    rest: bool,
    sign: int,
) -> None:
    milli = 0 if rest else shapes[shape, S_MILLI]
    if milli != 0 and shapes[shape, S_FLAGS] & EXCLUSIVE == 0:
        shadow.share[node, held] += sign * milli
        return
    for gpu in range(nodes.table[node, ALL_GPU]):
        if (held >> gpu) & 1:
            shadow.share[node, gpu] += sign * WHOLE


@kernel
def room_everywhere(
    nodes: Nodes, shadow: Shadow, shapes: Any, classes: Classes, held: Held, rules: Rules, at: int
) -> None:
    """Sums the head's room over all nodes that it could use at `at`, less what it needs."""
    shape = shadow.number[SH_SHAPE]
    has_rest = shapes[shape, S_REST_GPU] != 0
    main = -shapes[shape, S_TASKS]
    rest = main - 1
    for node in range(len(nodes.table)):
        if counts(nodes, shadow, shapes, classes, held, rules.reservations, node, at):
            main += room(nodes, shadow, shapes, rules.shares, node, 0, 0, 0, 0, 0, -1, 0)
            if has_rest:
                rest += room(nodes, shadow, shapes, rules.shares, node, 1, 0, 0, 0, 0, -1, 0)
    shadow.number[SH_SLACK] = main
    shadow.number[SH_REST_SLACK] = rest if has_rest else NEVER


@leaf
def add_room(
    nodes: Nodes,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rules: Rules,
    book: Book,
    entry: int,
    tasks: int,
    at: int,
    sign: int,
) -> None:
    """Adds (or takes off) the head's room on each node of a job, each node once."""
    has_rest = shapes[shadow.number[SH_SHAPE], S_REST_GPU] != 0
    for task in range(tasks):
        node = book.node[entry + task]
        again = False
        for other in range(task):
            if book.node[entry + other] == node:
                again = True
                break
        if again or not counts(nodes, shadow, shapes, classes, held, rules.reservations, node, at):
            continue
        for which in range(2 if has_rest else 1):
            fits = room(nodes, shadow, shapes, rules.shares, node, which, 0, 0, 0, 0, -1, 0)
            shadow.number[SH_REST_SLACK if which else SH_SLACK] += sign * fits


@kernel
def cast_shadow(
    nodes: Nodes,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rows: Rows,
    runs: Runs,
    book: Book,
    rules: Rules,
    heap: Any,
    size: int,
    scratch: Any,
    head: int,
    free_milli: int,
) -> int:
    """Finds the head's shadow; returns the new size of the heap of believed ends, which loses
    its stale entries on the way."""
    number = shadow.number
    asked = shapes[rows.shape[head], S_SIZE]
    number[SH_STAMP] += 1
    number[SH_SHAPE] = rows.shape[head]
    number[SH_HEAD] = head
    number[SH_LIMIT] = rows.limit[head]
    number[SH_AT] = NEVER
    room_everywhere(nodes, shadow, shapes, classes, held, rules, 0)
    popped = 0
    last = -1
    while size > 0:
        at = heap[0] >> JOB_BITS
        before = popped
        while size > 0 and heap[0] >> JOB_BITS == at:
            packed = heap[0]
            job = packed & JOB_MASK
            size = pop(heap, size)
            if packed == last or runs.phase[job] != RUNS or believed_end(rows, runs, job) != at:
                continue
            last = packed
            scratch[popped] = packed
            popped += 1
            entry = rows.place[job]
            tasks = tasks_of(shapes, rows.shape[job])
            for sign in range(-1, 2, 2):
                add_room(nodes, shadow, shapes, classes, held, rules, book, entry, tasks, at, sign)
                if sign < 0:
                    release_at_shadow(nodes, shadow, shapes, rows, book, rules.shares, job, 1)
            free_milli += milli_held(nodes, shapes, rows, book, rules.plain_sizes, job, 1)
        if popped == before:
            continue  # stale entries alone: nothing ends at this instant
        if rules.reservations != 0:
            room_everywhere(nodes, shadow, shapes, classes, held, rules, at)
        if (
            number[SH_SLACK] >= 0
            and number[SH_REST_SLACK] >= 0
            and free_milli - asked >= rules.headroom_milli
        ):
            number[SH_AT] = at
            break
    for at in range(popped):
        size = push(heap, size, scratch[at])
    number[SH_FREE] = free_milli - asked
    return size
