"""Filling a leaf with tasks, and the node for the smaller last one."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.buckets import next_filled, next_node
from scheduler_advisor.engine.choose import admits
from scheduler_advisor.engine.live.compiled import kernel
from scheduler_advisor.engine.parts.net import (
    IN_LEAF,
    IN_RACK,
    IN_SPINE,
    ONE_LEAF,
    ONE_NODE,
    ONE_RACK,
    ONE_SPINE,
    Net,
)
from scheduler_advisor.engine.parts.put import put
from scheduler_advisor.engine.parts.rooms import MANY, room_on
from scheduler_advisor.engine.world import (
    GROUP,
    MARK,
    S_CLASS,
    S_FLAGS,
    S_GPU,
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
    Shadow,
)


@kernel
def find_node(
    nodes: Nodes,
    buckets: Buckets,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rules: Rules,
    net: Net,
    shape: int,
    own: int,
    now: int,
    until: int,
    stamp: int,
    guard: int,
    plain: int,
    rack: int,
    where: int,
    room: int,
) -> int:
    """The node of the leaf with exactly so much room: least free GPUs, then the lowest."""
    gpu, cls = shapes[shape, S_GPU], shapes[shape, S_CLASS]
    best = -1
    best_free = MANY
    for at in range(net.group_start[where], net.group_start[where + 1]):
        group = net.group_list[at]
        if classes.member[cls, group] == 0 or (rack >= 0 and net.of_group[group, IN_RACK] != rack):
            continue
        free = next_filled(buckets, group, room * gpu)
        while free > 0 and free <= best_free:
            bucket = group * (rules.most + 1) + free
            node = next_node(buckets, bucket, 0)
            while node >= 0:
                if plain != 0:
                    fits = free // gpu == room and nodes.table[node, MARK] != stamp
                else:
                    fits = room == room_on(
                        nodes, shadow, shapes, classes, held, rules, shape, own, now, until,
                        stamp, guard, node,
                    )  # fmt: skip
                if fits:
                    break
                node = next_node(buckets, bucket, node + 1)
            if node >= 0:
                if free < best_free or node < best:
                    best = node
                    best_free = free
                break
            free = next_filled(buckets, group, free + 1)
    return best


@kernel
def fill_leaf(
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
    where: int,
    first: int,
    tasks: int,
) -> int:
    """Places `tasks` tasks from `first` on in one leaf; returns how many it could."""
    shape = rows.shape[job]
    until = now + rows.limit[job]
    left = tasks
    while left > 0:
        room = 0
        for one in range(rules.most, 0, -1):
            if net.rooms[where, one] != 0 and (room == 0 or one >= left):
                room = one
        if room == 0:
            break
        node = find_node(
            nodes, buckets, shadow, shapes, classes, held, rules, net, shape, own, now, until,
            stamp, guard, plain, rack, where, room,
        )  # fmt: skip
        if node < 0:
            break
        net.rooms[where, room] -= 1
        for _ in range(min(room, left)):
            task = first + tasks - left
            if put(
                nodes, buckets, shadow, shapes, classes, held, book, rules, net, shape,
                rows.place[job], task, node, stamp, guard,
            ) == 0:  # fmt: skip
                return tasks - left
            left -= 1
    return tasks - left


@kernel
def rest_node(
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
    need: int,
) -> int:
    """The node for the smaller last task: step 4."""
    shape = rows.shape[job]
    entry = rows.place[job]
    gpu, cpu = shapes[shape, S_REST_GPU], shapes[shape, S_REST_CPU]
    mem, flags = shapes[shape, S_REST_MEM], shapes[shape, S_FLAGS]
    until = now + rows.limit[job]
    last = nodes.table[book.node[entry + shapes[shape, S_TASKS] - 1], GROUP]
    best = -1
    best_key = MANY
    cls = shapes[shape, S_CLASS]
    for at in range(classes.start[cls], classes.start[cls + 1]):
        group = classes.groups[at]
        far = 3
        if net.of_group[group, IN_LEAF] == net.of_group[last, IN_LEAF]:
            far = 1
        elif net.of_group[group, IN_SPINE] == net.of_group[last, IN_SPINE]:
            far = 2
        if (
            (need in (ONE_NODE, ONE_LEAF) and far > 1)
            or (need == ONE_SPINE and far > 2)
            or (need == ONE_RACK and net.of_group[group, IN_RACK] != net.of_group[last, IN_RACK])
        ):
            continue
        free = next_filled(buckets, group, gpu)
        while free > 0:
            bucket = group * (rules.most + 1) + free
            node = next_node(buckets, bucket, 0)
            while node >= 0:
                near = 0 if nodes.table[node, MARK] == stamp else far
                key = near * 1000 + free
                if (
                    (key < best_key or (key == best_key and node < best))
                    and not (need == ONE_NODE and near != 0)
                    and admits(
                        nodes, shadow, shapes, classes, held, rules, node, own, gpu, cpu, mem, 0,
                        flags, now, until, stamp, 0, guard, -1,
                    )
                ):  # fmt: skip
                    best = node
                    best_key = key
                node = next_node(buckets, bucket, node + 1)
            free = next_filled(buckets, group, free + 1)
    return best
