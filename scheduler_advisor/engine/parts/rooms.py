"""How many of a gang's tasks each part of the network holds, and which part is narrowest."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.buckets import next_filled, next_node
from scheduler_advisor.engine.choose import admits
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.parts.net import (
    ANYWHERE,
    IN_LEAF,
    IN_RACK,
    ONE_LEAF,
    ONE_NODE,
    ONE_SPINE,
    Net,
)
from scheduler_advisor.engine.world import (
    CPU,
    DISTINCT,
    EXCLUSIVE,
    GPU,
    MARK,
    MEM,
    S_CLASS,
    S_CPU,
    S_FLAGS,
    S_GPU,
    S_MEM,
    Buckets,
    Classes,
    Held,
    Nodes,
    Rules,
    Shadow,
)

MANY = 1 << 40


@leaf
def room_on(
    nodes: Nodes,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    rules: Rules,
    shape: int,
    own: int,
    now: int,
    until: int,
    stamp: int,
    guard: int,
    node: int,
) -> int:
    """How many of the shape's tasks the node takes now."""
    gpu, cpu, mem = shapes[shape, S_GPU], shapes[shape, S_CPU], shapes[shape, S_MEM]
    flags = shapes[shape, S_FLAGS]
    if nodes.table[node, MARK] == stamp or not admits(
        nodes, shadow, shapes, classes, held, rules, node, own, gpu, cpu, mem, 0, flags, now,
        until, stamp, 0, guard, -1,
    ):  # fmt: skip
        return 0
    if flags & (DISTINCT | EXCLUSIVE):
        return 1 if nodes.table[node, GPU] >= gpu else 0
    room = nodes.table[node, GPU] // gpu
    if cpu != 0:
        room = min(room, nodes.table[node, CPU] // cpu)
    if mem != 0:
        room = min(room, nodes.table[node, MEM] // mem)
    return room


@kernel
def look(
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
) -> None:
    """Counts nodes by room and free GPUs, leaf by leaf; in one rack only unless that is -1."""
    net.rooms[:, :] = 0
    net.free[:] = 0
    gpu, cls = shapes[shape, S_GPU], shapes[shape, S_CLASS]
    for at in range(classes.start[cls], classes.start[cls + 1]):
        group = classes.groups[at]
        if rack >= 0 and net.of_group[group, IN_RACK] != rack:
            continue
        where = net.of_group[group, IN_LEAF]
        free = next_filled(buckets, group, 1)
        while free > 0:
            bucket = group * (rules.most + 1) + free
            net.free[where] += free * buckets.count[bucket]
            if free >= gpu:
                if plain != 0:
                    net.rooms[where, free // gpu] += buckets.count[bucket]
                else:
                    node = next_node(buckets, bucket, 0)
                    while node >= 0:
                        room = room_on(
                            nodes, shadow, shapes, classes, held, rules, shape, own, now, until,
                            stamp, guard, node,
                        )  # fmt: skip
                        net.rooms[where, room] += 1
                        node = next_node(buckets, bucket, node + 1)
            free = next_filled(buckets, group, free + 1)


@kernel
def count_free(buckets: Buckets, classes: Classes, net: Net, most: int, cls: int) -> None:
    """Free GPUs leaf by leaf, all that a job of one task asks of the network."""
    net.free[:] = 0
    for at in range(classes.start[cls], classes.start[cls + 1]):
        group = classes.groups[at]
        where = net.of_group[group, IN_LEAF]
        free = next_filled(buckets, group, 1)
        while free > 0:
            net.free[where] += free * buckets.count[group * (most + 1) + free]
            free = next_filled(buckets, group, free + 1)


@leaf
def fewest(rooms: Any, row: int, most: int, tasks: int) -> int:
    """The fewest nodes of the row that hold so many tasks."""
    count = 0
    answer = MANY
    for room in range(most, 0, -1):
        here = rooms[row, room]
        if here * room >= tasks:
            answer = count + (tasks + room - 1) // room
            break
        tasks -= here * room
        count += here
    return answer


@leaf
def within(rooms: Any, row: int, most: int, tasks: int, count: int) -> tuple[int, int]:
    """What the `count` roomiest nodes of the row hold, at most `tasks`; nodes used."""
    held = 0
    used = 0
    for room in range(most, 0, -1):
        here = min(rooms[row, room], count - used)
        if here * room >= tasks - held:
            used += (tasks - held + room - 1) // room
            held = tasks
            break
        held += here * room
        used += here
    return held, used


@kernel
def gather(net: Net, most: int, level: int) -> int:
    """Adds leaves up to the domains of a level; returns how many domains there are."""
    leaves = len(net.free)
    count = 1
    if level == ONE_LEAF:
        count = leaves
    elif level == ONE_SPINE:
        count = len(net.spine_leaves)
    net.wide[:count, :] = 0
    net.wide_free[:count] = 0
    for one in range(leaves):
        domain = domain_of(net, level, one)
        net.wide_free[domain] += net.free[one]
        for room in range(1, most + 1):
            net.wide[domain, room] += net.rooms[one, room]
    return count


@leaf
def domain_of(net: Net, level: int, one: int) -> int:
    if level == ONE_LEAF:
        return one
    return net.spine_of[one] if level == ONE_SPINE else 0


@kernel
def next_leaf(
    net: Net, most: int, level: int, domain: int, tasks: int, count: int
) -> tuple[int, int, int]:
    """The leaf to fill next, the tasks it takes and the nodes they use; -1 if there is none."""
    best = -1
    best_held = 0
    best_used = 0
    for one in range(len(net.free)):
        if net.taken[one] != 0 or domain_of(net, level, one) != domain:
            continue
        held, used = within(net.rooms, one, most, tasks, count)
        if held > best_held or (held == best_held > 0 and net.free[one] < net.free[best]):
            best = one
            best_held = held
            best_used = used
    return best, best_held, best_used


@kernel
def leaves_for(net: Net, most: int, level: int, domain: int, tasks: int, count: int) -> int:
    """How many leaves step 3 would fill."""
    if level == ONE_LEAF:
        return 1
    net.taken[:] = 0
    leaves = 0
    while tasks > 0:
        one, held, used = next_leaf(net, most, level, domain, tasks, count)
        if one < 0:
            return MANY
        net.taken[one] = 1
        tasks -= held
        count -= used
        if count <= 0:
            count = MANY
        leaves += 1
    return leaves


@kernel
def narrowest(net: Net, most: int, need: int, tasks: int) -> tuple[int, int, int, int]:
    """Level, domain, nodes and leaves of steps 1 and 2; level -1 where nothing holds the gang."""
    count = MANY
    last = ANYWHERE
    if need in (ONE_LEAF, ONE_SPINE):
        last = need
    domains = gather(net, most, last)
    for domain in range(domains):
        count = min(count, fewest(net.wide, domain, most, tasks))
    if need == ONE_NODE and count > 1:
        count = MANY
    if count == MANY:
        return -1, -1, 0, 0
    for step in range(3):
        level = ONE_LEAF
        if step > 0:
            level = ONE_SPINE if step == 1 else ANYWHERE
        domains = len(net.free)
        rooms = net.rooms
        free = net.free
        if level != ONE_LEAF:
            domains = gather(net, most, level)
            rooms = net.wide
            free = net.wide_free
        best = -1
        best_leaves = MANY
        for domain in range(domains):
            if fewest(rooms, domain, most, tasks) > count:
                continue
            leaves = leaves_for(net, most, level, domain, tasks, count)
            if leaves < best_leaves or (leaves == best_leaves and free[domain] < free[best]):
                best = domain
                best_leaves = leaves
        if best >= 0:
            return level, best, count, best_leaves
        if level == last:
            break
    return -1, -1, 0, 0
