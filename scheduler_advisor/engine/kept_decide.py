"""Whether a queued job keeps its place in a plan that is kept, and whether it may start now."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.buckets import next_filled, next_node
from scheduler_advisor.engine.choose import better
from scheduler_advisor.engine.gaps import gap_for
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.kept import (
    GAINING,
    LISTED,
    UNPLANNED,
    WITNESS,
    Kept,
    first_room,
)
from scheduler_advisor.engine.kept_changes import (
    least_cpu,
    least_gpu,
    least_mem,
    seen_since,
    seen_until,
    touched,
)
from scheduler_advisor.engine.kept_search import rule_of, search_many, search_now, search_one
from scheduler_advisor.engine.place import tasks_of
from scheduler_advisor.engine.plan import NOWHEN, W_CPU, W_GPU, W_MEM, W_TASKS, window
from scheduler_advisor.engine.shadow import tasks_in
from scheduler_advisor.engine.world import (
    BEST_FIT,
    GROUP,
    S_CLASS,
    S_CPU,
    S_FLAGS,
    S_GPU,
    S_MEM,
    S_REST_GPU,
    S_TASKS,
    Book,
    Buckets,
    Classes,
    Held,
    Nodes,
    Rows,
    Rules,
)


@kernel
def fits_now(
    nodes: Nodes, buckets: Buckets, classes: Classes, shapes: Any, most: int, kept: Kept,
    shape: int, now: int, length: int,
) -> bool:  # fmt: skip
    """Do the job's tasks, counted apart, fit now beside what is planned?"""
    cls = shapes[shape, S_CLASS]
    gpu = shapes[shape, S_GPU]
    cpu = shapes[shape, S_CPU]
    mem = shapes[shape, S_MEM]
    flags = shapes[shape, S_FLAGS]
    left = shapes[shape, S_TASKS]
    plan = kept.plan
    if left == 1 and kept.number[WITNESS] >= 0:
        at, _ = first_room(plan, kept.number[WITNESS], now, length, gpu, cpu, mem, now)
        if at == now and classes.member[cls, nodes.table[kept.number[WITNESS], GROUP]] != 0:
            return True
    for one in range(classes.start[cls], classes.start[cls + 1]):
        group = classes.groups[one]
        free = next_filled(buckets, group, gpu)
        while free >= gpu:
            bucket = group * (most + 1) + free
            node = next_node(buckets, bucket, 0)
            while node >= 0:
                at, _ = first_room(plan, node, now, length, gpu, cpu, mem, now)
                if at == now:
                    if left == 1:
                        kept.number[WITNESS] = node
                        return True
                    window(plan, node, now, now + length, kept.least)
                    left -= tasks_in(
                        kept.least[node, W_GPU], kept.least[node, W_CPU], kept.least[node, W_MEM],
                        kept.least[node, W_TASKS], gpu, cpu, mem, flags,
                    )  # fmt: skip
                    if left <= 0:
                        return True
                node = next_node(buckets, bucket, node + 1)
            free = next_filled(buckets, group, free + 1)
    return False


@leaf
def _other_place(
    shapes: Any, rows: Rows, book: Book, kept: Kept, job: int, start: int, length: int
) -> bool:
    """Is the job's place in the plan gone, or better or worse than it was?"""
    if not touched(kept, shapes, rows, book, job, start, start + length):
        return False
    shape = rows.shape[job]
    if not kept.gpus_only or shapes[shape, S_REST_GPU] != 0:
        return True
    entry = rows.place[job]
    for task in range(shapes[shape, S_TASKS]):
        node = book.node[entry + task]
        if kept.spot[node, LISTED] != 0:
            at, worth = first_room(
                kept.plan, node, start, length, shapes[shape, S_GPU], 0, 0, start
            )
            if at != start or worth != kept.worth[entry + task]:
                return True
    return False


@kernel
def decide(
    nodes: Nodes, buckets: Buckets, classes: Classes, shapes: Any, held: Held, rows: Rows,
    rules: Rules, book: Book, kept: Kept, job: int, now: int, length: int, stamp: int,
) -> int:  # fmt: skip
    """When the job starts in the plan as it is; its nodes go to the book. A job that had a place
    keeps it where nothing that changed concerns it."""
    shape = rows.shape[job]
    entry = rows.place[job]
    start = kept.start[job]
    one = tasks_of(shapes, shape) == 1
    since = now
    latest = NOWHEN
    if start != UNPLANNED and start >= now:
        stays = start == NOWHEN or not _other_place(shapes, rows, book, kept, job, start, length)
        if one:
            at, node, worth = gain(
                nodes, classes, shapes, rules, kept, start, shape, book.node[entry],
                kept.worth[entry], stays, now, length,
            )  # fmt: skip
            if node >= 0:
                book.node[entry] = node
                kept.worth[entry] = worth
                return at
            if stays:
                return start
            since = start  # nothing that is earlier has changed for it
        else:
            packs = int(rule_of(rules) == BEST_FIT)
            gained = earliest_gain(nodes, classes, shapes, kept, shape, packs, now, start, length)
            if stays:
                if gained == NOWHEN:
                    return start
                latest = start
            since = min(start, gained)
    if one and since == now:
        node, worth = search_now(nodes, buckets, classes, shapes, rules, kept, shape, now, length)
        if node >= 0:
            book.node[entry] = node
            kept.worth[entry] = worth
            return now
    if one:
        at, node, worth = search_one(nodes, classes, shapes, rules, kept, shape, since, length)
        book.node[entry] = node
        kept.worth[entry] = worth
        return at
    return search_many(
        nodes, classes, shapes, held, rows, rules, book, kept, job, since, latest, length, stamp
    )


@leaf
def gain(
    nodes: Nodes, classes: Classes, shapes: Any, rules: Rules, kept: Kept, start: int, shape: int,
    old: int, old_worth: int, stays: bool, now: int, length: int,
) -> tuple[int, int, int]:  # fmt: skip
    """The best place of a planned job of one task on nodes that changed, if it is better than the
    one that it has, or at least as good as the one that it had: all other nodes are worse. Node -1
    otherwise."""
    cls = shapes[shape, S_CLASS]
    rule = rule_of(rules)
    gpu = shapes[shape, S_GPU]
    packs = int(rule == BEST_FIT)
    alone = kept.alone[gpu]
    best = -1
    best_at = start
    best_worth = 0
    for one in range(kept.number[GAINING] + (0 if stays else 1)):
        node = kept.gains[one] if one < kept.number[GAINING] else old
        if alone[node] > best_at:
            continue
        if one < kept.number[GAINING] and (
            alone[node] >= seen_until(kept, node, packs)
            or start + length <= seen_since(kept, node, packs)
        ):
            continue
        if classes.member[cls, nodes.table[node, GROUP]] == 0:
            continue
        at = gap_for(kept.gaps, kept.plan, node, gpu, now, length)
        if at > best_at:
            continue
        at, worth = first_room(
            kept.plan, node, at, length, gpu, shapes[shape, S_CPU], shapes[shape, S_MEM], best_at
        )
        if at < best_at or (at == best_at and better(rule, node, worth, best, best_worth)):
            best = node
            best_at = at
            best_worth = worth
    if best < 0 or best_at < start:
        return best_at, best, best_worth
    if better(rule, best, best_worth, old, old_worth) or (best == old and best_worth == old_worth):
        return best_at, best, best_worth
    return best_at, -1, 0


@leaf
def earliest_gain(
    nodes: Nodes, classes: Classes, shapes: Any, kept: Kept, shape: int, packs: int, now: int,
    start: int, length: int,
) -> int:  # fmt: skip
    """When some task of the shape first has room on a node that changed, in a time that changed, no
    later than `start`; NOWHEN if nowhere."""
    cls = shapes[shape, S_CLASS]
    gpu = least_gpu(shapes, shape)
    cpu = least_cpu(shapes, shape)
    mem = least_mem(shapes, shape)
    alone = kept.alone[gpu]
    found = NOWHEN
    latest = start
    for one in range(kept.number[GAINING]):
        node = kept.gains[one]
        until = seen_until(kept, node, packs)
        since = seen_since(kept, node, packs)
        if alone[node] > latest or alone[node] >= until or start + length <= since:
            continue
        if classes.member[cls, nodes.table[node, GROUP]] == 0:
            continue
        at = gap_for(kept.gaps, kept.plan, node, gpu, max(now, since - length + 1), length)
        if at > latest or at >= until:
            continue
        if not kept.gpus_only:
            at, _ = first_room(kept.plan, node, at, length, gpu, cpu, mem, min(latest, until - 1))
        if at <= latest and at < until:
            found = at
            latest = at
    return found
