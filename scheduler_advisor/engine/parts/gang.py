"""Placing a gang on the fewest nodes, then within the narrowest part of the network.

With T tasks of g GPUs, a node has room for free // g of them. N is the fewest nodes that hold all.

1. N = 1: the node with the least free GPUs; ties: the leaf with the least, then the lowest node.
2. Otherwise the narrowest level (leaf, spine, everywhere) with a domain in which N nodes hold the
   gang: the one that needs the fewest leaves, then with the least free GPUs, then the lowest.
3. Inside, leaves in turn: one that holds all that is left on the nodes that are left (the least
   free GPUs), else the one that takes most. In a leaf, nodes in turn: the least room that holds all
   that is left, else the most room; then the least free GPUs, then the lowest node.
4. The rest goes beside a task if it can; else into the same leaf, the same spine, anywhere: least
   free GPUs, then the lowest node.

A rule to stay in one domain (node, leaf, spine, rack) cuts the search there; N then is the fewest
nodes of such a domain. Steps 2 and 3 are exact where every node has the same room, or one leaf
suffices; on mixed rooms over several leaves they are greedy.
"""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.buckets import next_filled, next_node
from scheduler_advisor.engine.live.compiled import kernel
from scheduler_advisor.engine.live.dissolved import dissolved
from scheduler_advisor.engine.parts.fill import fill_leaf, rest_node
from scheduler_advisor.engine.parts.net import (
    IN_LEAF,
    IN_RACK,
    ONE_RACK,
    Net,
)
from scheduler_advisor.engine.parts.put import put
from scheduler_advisor.engine.parts.rooms import (
    MANY,
    count_free,
    look,
    narrowest,
    next_leaf,
    room_on,
)
from scheduler_advisor.engine.place import move_task, tasks_of
from scheduler_advisor.engine.shadow import SH_REST_SLACK, SH_SLACK
from scheduler_advisor.engine.world import (
    S_CLASS,
    S_CPU,
    S_FLAGS,
    S_GPU,
    S_MEM,
    S_TASKS,
    Book,
    Buckets,
    Classes,
    Held,
    Nodes,
    Rows,
    Rules,
    Shadow,
)


@kernel
def one_node(
    nodes: Nodes,
    buckets: Buckets,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rows: Rows,
    book: Book,
    rules: Rules,
    net: Net,
    job: int,
    own: int,
    now: int,
    stamp: int,
    guard: int,
    plain: int,
    rack: int,
) -> int:
    """All tasks on one node: the least free GPUs, then in the fullest leaf, then the lowest."""
    shape = rows.shape[job]
    gpu, cls = shapes[shape, S_GPU], shapes[shape, S_CLASS]
    tasks = shapes[shape, S_TASKS]
    until = now + rows.limit[job]
    best = -1
    best_free = MANY
    best_leaf = MANY
    for at in range(classes.start[cls], classes.start[cls + 1]):
        group = classes.groups[at]
        if rack >= 0 and net.of_group[group, IN_RACK] != rack:
            continue
        around = net.free[net.of_group[group, IN_LEAF]]
        free = next_filled(buckets, group, gpu * tasks)
        while 0 < free <= best_free:
            bucket = group * (rules.most + 1) + free
            node = next_node(buckets, bucket, 0)
            while node >= 0 and plain == 0 and tasks > room_on(
                nodes, shadow, shapes, classes, held, rules, shape, own, now, until, stamp, guard,
                node,
            ):  # fmt: skip
                node = next_node(buckets, bucket, node + 1)
            if node >= 0:
                if free < best_free or around < best_leaf or (around == best_leaf and node < best):
                    best, best_free, best_leaf = node, free, around
                break
            free = next_filled(buckets, group, free + 1)
    if best < 0:
        return 0
    placed = 0
    for task in range(tasks):
        placed += put(
            nodes, buckets, shadow, shapes, classes, held, book, rules, net, shape,
            rows.place[job], task, best, stamp, guard,
        )  # fmt: skip
        if placed != task + 1:
            break
    return placed


@dissolved
def place_tasks(
    nodes: Nodes,
    buckets: Buckets,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rows: Rows,
    book: Book,
    rules: Rules,
    net: Net,
    job: int,
    own: int,
    now: int,
    stamp: int,
    guard: int,
    plain: int,
    need: int,
) -> int:
    """The equal tasks: steps 1 to 3. Returns how many are placed; all of them or some to undo."""
    shape = rows.shape[job]
    until = now + rows.limit[job]
    tasks = shapes[shape, S_TASKS]
    if tasks == 1 and need != ONE_RACK:
        count_free(buckets, classes, net, rules.most, shapes[shape, S_CLASS])
        return one_node(
            nodes, buckets, shadow, shapes, classes, held, rows, book, rules, net, job, own, now,
            stamp, guard, plain, -1,
        )  # fmt: skip
    rack = -1
    best_rack = -1
    best_count = MANY
    best_leaves = MANY
    best_free = MANY
    racks = net.racks if need == ONE_RACK else 1
    for one in range(racks):
        rack = one if need == ONE_RACK else -1
        look(
            nodes, buckets, shadow, shapes, classes, held, rules, net, shape, own, now, until,
            stamp, guard, plain, rack,
        )  # fmt: skip
        level, domain, count, leaves = narrowest(net, rules.most, need, tasks)
        if need != ONE_RACK:
            break
        free = 0
        for leaf_at in range(len(net.free)):
            free += net.free[leaf_at]
        if level >= 0 and (
            count < best_count
            or (count == best_count and leaves < best_leaves)
            or (count == best_count and leaves == best_leaves and free < best_free)
        ):
            best_rack, best_count, best_leaves, best_free = one, count, leaves, free
    if need == ONE_RACK:
        if best_rack < 0:
            return 0
        rack = best_rack
        look(
            nodes, buckets, shadow, shapes, classes, held, rules, net, shape, own, now, until,
            stamp, guard, plain, rack,
        )  # fmt: skip
        level, domain, count, leaves = narrowest(net, rules.most, need, tasks)
    if level < 0:
        return 0
    placed = 0
    net.taken[:] = 0
    if count == 1:
        return one_node(
            nodes, buckets, shadow, shapes, classes, held, rows, book, rules, net, job, own, now,
            stamp, guard, plain, rack,
        )  # fmt: skip
    while placed < tasks:
        where, took, used = next_leaf(net, rules.most, level, domain, tasks - placed, count)
        if where < 0:
            break
        done = fill_leaf(
            nodes, buckets, shadow, shapes, classes, held, rows, book, rules, net, job, own, now,
            stamp, guard, plain, rack, where, placed, took,
        )  # fmt: skip
        placed += done
        if done < took:
            break
        net.taken[where] = 1
        count -= used
        if count <= 0:
            count = MANY
    return placed


@kernel
def place_gang(
    nodes: Nodes,
    buckets: Buckets,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rows: Rows,
    book: Book,
    rules: Rules,
    net: Net,
    job: int,
    now: int,
    stamp: int,
    guard: int,
) -> int:
    """Places the whole job by the network or nothing of it: 1, 0 or -1 as `placing.place`."""
    shape = rows.shape[job]
    own = held.named[job] if rules.reservations != 0 else -1
    slack, rest_slack = shadow.number[SH_SLACK], shadow.number[SH_REST_SLACK]
    plain = 0
    if (
        shapes[shape, S_CPU] == 0
        and shapes[shape, S_MEM] == 0
        and shapes[shape, S_FLAGS] == 0
        and rules.reservations == 0
        and guard == 0
    ):
        plain = 1
    wanted = tasks_of(shapes, shape)
    need = net.need[shapes[shape, S_CLASS]]
    placed = place_tasks(
        nodes, buckets, shadow, shapes, classes, held, rows, book, rules, net, job, own, now,
        stamp, guard, plain, need,
    )  # fmt: skip
    if placed == shapes[shape, S_TASKS] < wanted:
        node = rest_node(
            nodes, buckets, shadow, shapes, classes, held, rows, book, rules, net, job, own, now,
            stamp, guard, need,
        )  # fmt: skip
        if node >= 0:
            placed += put(
                nodes, buckets, shadow, shapes, classes, held, book, rules, net, shape,
                rows.place[job], placed, node, stamp, guard,
            )  # fmt: skip
    if placed == wanted:
        return 1
    for task in range(placed):
        move_task(
            nodes, buckets, shapes, book, rules.most, rules.shares, rows.place[job], shape, task, 1
        )
    shadow.number[SH_SLACK] = slack
    shadow.number[SH_REST_SLACK] = rest_slack
    return 0 if placed == 0 and (guard == 0 or wanted == 1) else -1
