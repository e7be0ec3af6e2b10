"""Where and when a queued job has room in a plan that is kept."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.buckets import next_node
from scheduler_advisor.engine.choose import better
from scheduler_advisor.engine.gaps import gap_for
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.kept import (
    Kept,
    first_room,
)
from scheduler_advisor.engine.plan import NOWHEN, W_CPU, W_GPU, W_MEM, W_TASKS, put_tasks, window
from scheduler_advisor.engine.shadow import tasks_in
from scheduler_advisor.engine.world import (
    ALL_GPU,
    BEST_FIT,
    CONSOLIDATE,
    DISTINCT,
    GROUP,
    MARK,
    S_CLASS,
    S_CPU,
    S_FLAGS,
    S_GPU,
    S_MEM,
    S_REST_GPU,
    S_TASKS,
    WORST_FIT,
    Book,
    Buckets,
    Classes,
    Held,
    Nodes,
    Rows,
    Rules,
)


@leaf
def rule_of(rules: Rules) -> int:
    return BEST_FIT if rules.placement == CONSOLIDATE else rules.placement


@kernel
def search_now(
    nodes: Nodes, buckets: Buckets, classes: Classes, shapes: Any, rules: Rules, kept: Kept,
    shape: int, now: int, length: int,
) -> tuple[int, int]:  # fmt: skip
    """Node, and least free GPUs there, of a job of one task that starts now; -1 if it cannot."""
    cls = shapes[shape, S_CLASS]
    gpu = shapes[shape, S_GPU]
    rule = rule_of(rules)
    best = -1
    best_worth = 0
    for one in range(classes.start[cls], classes.start[cls + 1]):
        first = classes.groups[one] * (rules.most + 1)
        for free in range(rules.most, gpu - 1, -1):
            if rule == WORST_FIT and best >= 0 and free < best_worth:
                break
            if buckets.count[first + free] == 0:
                continue
            node = next_node(buckets, first + free, 0)
            while node >= 0:
                if gap_for(kept.gaps, kept.plan, node, gpu, now, length) == now:
                    at, worth = first_room(
                        kept.plan, node, now, length, gpu, shapes[shape, S_CPU],
                        shapes[shape, S_MEM], now,
                    )  # fmt: skip
                    if at == now and better(rule, node, worth, best, best_worth):
                        best = node
                        best_worth = worth
                node = next_node(buckets, first + free, node + 1)
    return best, best_worth


@kernel
def search_one(
    nodes: Nodes, classes: Classes, shapes: Any, rules: Rules, kept: Kept, shape: int, since: int,
    length: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Start, node and least free GPUs there of a job of one task."""
    cls = shapes[shape, S_CLASS]
    gpu = shapes[shape, S_GPU]
    rule = rule_of(rules)
    best = -1
    best_at = NOWHEN
    best_worth = 0
    alone = kept.alone[gpu]
    for node in range(len(nodes.table)):
        if alone[node] > best_at:
            continue
        lower = gap_for(kept.gaps, kept.plan, node, gpu, since, length)
        if lower > best_at or classes.member[cls, nodes.table[node, GROUP]] == 0:
            continue
        at, worth = first_room(
            kept.plan, node, lower, length, gpu, shapes[shape, S_CPU], shapes[shape, S_MEM],
            best_at,
        )  # fmt: skip
        if at < best_at or (
            at == best_at and at < NOWHEN and better(rule, node, worth, best, best_worth)
        ):
            best = node
            best_at = at
            best_worth = worth
    return best_at, best, best_worth


@kernel
def put_alike(
    nodes: Nodes, shapes: Any, rules: Rules, book: Book, kept: Kept, count: int, entry: int,
    shape: int, stamp: int,
) -> bool:  # fmt: skip
    """Places equal tasks one by one on the first `count` nodes of `kept.fitting`; False if they do
    not all fit. `kept.least` is used up."""
    least = kept.least
    gpu = shapes[shape, S_GPU]
    cpu = shapes[shape, S_CPU]
    mem = shapes[shape, S_MEM]
    distinct = shapes[shape, S_FLAGS] & DISTINCT
    rule = rule_of(rules)
    for one in range(count):
        kept.room[kept.fitting[one]] = least[kept.fitting[one], W_GPU]
    for task in range(shapes[shape, S_TASKS]):
        best = -1
        for one in range(count):
            node = kept.fitting[one]
            if (
                least[node, W_GPU] < gpu
                or least[node, W_CPU] < cpu
                or least[node, W_MEM] < mem
                or (distinct and nodes.table[node, MARK] == stamp)
            ):
                continue
            if best < 0 or better(rule, node, least[node, W_GPU], best, least[best, W_GPU]):
                best = node
        if best < 0:
            for before in range(task):
                nodes.table[book.node[entry + before], MARK] = -1
            return False
        book.node[entry + task] = best
        kept.worth[entry + task] = kept.room[best]
        nodes.table[best, MARK] = stamp
        least[best, W_GPU] -= gpu
        least[best, W_CPU] -= cpu
        least[best, W_MEM] -= mem
        least[best, W_TASKS] += 1
    return True


@kernel
def candidates(
    nodes: Nodes, classes: Classes, shapes: Any, kept: Kept, shape: int, since: int, latest: int,
    length: int, all_of_them: bool,
) -> int:  # fmt: skip
    """Lists the nodes on which some task of the shape has room from `since` on, no later than
    `latest`, and when; returns how many. `kept.soon` has the first instants of so many tasks; but
    for `all_of_them`, nodes that have room later than its last are left out."""
    cls = shapes[shape, S_CLASS]
    gpu = shapes[shape, S_GPU]
    tasks = shapes[shape, S_TASKS]
    alone, soon = kept.alone[gpu], kept.soon
    soon[tasks - 1] = NOWHEN
    known = count = 0
    for node in range(len(nodes.table)):
        if alone[node] > latest:
            continue
        at = gap_for(kept.gaps, kept.plan, node, gpu, since, length)
        if at > latest or classes.member[cls, nodes.table[node, GROUP]] == 0:
            continue
        if not kept.gpus_only:
            at, _ = first_room(
                kept.plan, node, at, length, gpu, shapes[shape, S_CPU], shapes[shape, S_MEM], latest
            )
            if at > latest:
                continue
        kept.when[node] = at
        kept.able[count] = node
        count += 1
        for _ in range(min(room_for(nodes, shapes, node, shape), tasks)):
            if known == tasks and soon[known - 1] <= at:
                break
            known = min(known + 1, tasks)
            slot = known - 1
            while slot > 0 and soon[slot - 1] > at:
                soon[slot] = soon[slot - 1]
                slot -= 1
            soon[slot] = at
        if known == tasks and not all_of_them:
            latest = min(latest, soon[tasks - 1])
    if known < tasks:
        soon[tasks - 1] = NOWHEN
    return count


@leaf
def room_for(nodes: Nodes, shapes: Any, node: int, shape: int) -> int:
    """Tasks of the shape for which the empty node has GPUs."""
    return tasks_in(
        nodes.table[node, ALL_GPU], NOWHEN, NOWHEN, 0, shapes[shape, S_GPU], 0, 0,
        shapes[shape, S_FLAGS],
    )  # fmt: skip


@kernel
def search_many(
    nodes: Nodes, classes: Classes, shapes: Any, held: Held, rows: Rows, rules: Rules, book: Book,
    kept: Kept, job: int, since: int, latest: int, length: int, stamp: int,
) -> int:  # fmt: skip
    """Start of a job of several tasks, no later than `latest`; its nodes go to the book."""
    shape = rows.shape[job]
    tasks = shapes[shape, S_TASKS]
    rest = shapes[shape, S_REST_GPU] != 0
    entry = rows.place[job]
    whole = False
    count = candidates(nodes, classes, shapes, kept, shape, since, latest, length, whole)
    at = kept.soon[tasks - 1]
    while at < NOWHEN:
        fits, fitting, later = fitting_at(nodes, shapes, kept, shape, count, at, latest, length)
        if fits >= tasks:
            if rest:
                found, later = put_rest(
                    nodes, classes, shapes, held, rows, rules, book, kept, job, at, length, stamp
                )
            else:
                found = put_alike(nodes, shapes, rules, book, kept, fitting, entry, shape, stamp)
            if found:
                return at
        if whole:
            at = later
        else:  # those left out until now may help
            whole = True
            since = later if rest and fits >= tasks else at + 1
            count = candidates(nodes, classes, shapes, kept, shape, since, latest, length, whole)
            at = since
    return NOWHEN


@kernel
def fitting_at(
    nodes: Nodes, shapes: Any, kept: Kept, shape: int, count: int, at: int, latest: int, length: int
) -> tuple[int, int, int]:
    """How many tasks fit at `at` on the first `count` nodes of `kept.able`; the nodes on which they
    do go to `kept.fitting`, so many; and before which instant no more will fit."""
    gpu = shapes[shape, S_GPU]
    cpu = shapes[shape, S_CPU]
    mem = shapes[shape, S_MEM]
    least = kept.least
    fits = fitting = 0
    later = NOWHEN
    for one in range(count):
        node = kept.able[one]
        if kept.when[node] > at:
            later = min(later, kept.when[node])
            continue
        then = window(kept.plan, node, at, at + length, least)
        here = tasks_in(
            least[node, W_GPU], least[node, W_CPU], least[node, W_MEM], least[node, W_TASKS],
            gpu, cpu, mem, shapes[shape, S_FLAGS],
        )  # fmt: skip
        if here == 0:
            kept.when[node], _ = first_room(kept.plan, node, at, length, gpu, cpu, mem, latest)
            then = kept.when[node]
        else:
            fits += here
            kept.fitting[fitting] = node
            fitting += 1
        if here < room_for(nodes, shapes, node, shape):  # more of them may have room later
            later = min(later, then)
    return fits, fitting, later


@kernel
def put_rest(
    nodes: Nodes, classes: Classes, shapes: Any, held: Held, rows: Rows, rules: Rules, book: Book,
    kept: Kept, job: int, at: int, length: int, stamp: int,
) -> tuple[bool, int]:  # fmt: skip
    """Places a job with a smaller last task at `at`, if that goes; and when next something ends or
    begins on some node."""
    shape = rows.shape[job]
    cls = shapes[shape, S_CLASS]
    later = NOWHEN
    for node in range(len(nodes.table)):
        if classes.member[cls, nodes.table[node, GROUP]] != 0:
            later = min(later, window(kept.plan, node, at, at + length, kept.least))
    found = put_tasks(
        nodes, classes, shapes, held, rules, book, rows.place[job], job, shape, -1, at,
        rows.limit[job], 0, stamp, kept.least,
    )  # fmt: skip
    return found, later
