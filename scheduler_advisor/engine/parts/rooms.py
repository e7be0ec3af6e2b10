"""How many of a gang's tasks each part of the network holds, and which part is narrowest."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.buckets import next_filled, next_node
from scheduler_advisor.engine.choose import admits
from scheduler_advisor.engine.live.compiled import kernel, leaf
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
    net.holds[:] = 0
    net.total[:, :] = 0
    gpu, cls = shapes[shape, S_GPU], shapes[shape, S_CLASS]
    for at in range(classes.start[cls], classes.start[cls + 1]):
        group = classes.groups[at]
        if rack >= 0 and net.of_group[group, IN_RACK] != rack:
            continue
        where = net.of_group[group, IN_LEAF]
        free = next_filled(buckets, group, 1)
        room = 0
        while free > 0:
            bucket = group * (rules.most + 1) + free
            net.free[where] += free * buckets.count[bucket]
            while (room + 1) * gpu <= free:
                room += 1
            if room > 0 and plain != 0:
                add_nodes(net, where, room, buckets.count[bucket])
            elif room > 0:
                node = next_node(buckets, bucket, 0)
                while node >= 0:
                    here = room_on(
                        nodes, shadow, shapes, classes, held, rules, shape, own, now, until,
                        stamp, guard, node,
                    )  # fmt: skip
                    add_nodes(net, where, here, 1)
                    node = next_node(buckets, bucket, node + 1)
            free = next_filled(buckets, group, free + 1)


@leaf
def add_nodes(net: Net, where: int, room: int, count: int) -> None:
    """So many nodes of the leaf have room for so many tasks each."""
    net.rooms[where, room] += count
    net.holds[where] += room * count
    net.total[0, room] += count


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
def gather(net: Net, most: int) -> None:
    """Adds leaves up to spines."""
    for domain in range(len(net.spine_leaves)):
        net.wide[domain, :] = 0
        net.wide_free[domain] = 0
        for at in range(net.spine_start[domain], net.spine_start[domain + 1]):
            one = net.leaf_list[at]
            net.wide_free[domain] += net.free[one]
            if net.holds[one] != 0:
                for room in range(1, most + 1):
                    net.wide[domain, room] += net.rooms[one, room]


@leaf
def leaves_of(net: Net, level: int, domain: int) -> tuple[int, int]:
    """Where the leaves of the domain begin and end in net.leaf_list."""
    if level == ONE_SPINE:
        return net.spine_start[domain], net.spine_start[domain + 1]
    return 0, len(net.leaf_list)


@kernel
def next_leaf(
    net: Net, most: int, level: int, domain: int, tasks: int, count: int
) -> tuple[int, int, int]:
    """The leaf to fill next, the tasks it takes and the nodes they use; -1 if there is none."""
    best = -1
    best_held = 0
    best_used = 0
    if level == ONE_LEAF:
        if net.taken[domain] != 0:
            return -1, 0, 0
        held, used = within(net.rooms, domain, most, tasks, count)
        return (domain if held > 0 else -1), held, used
    start, end = leaves_of(net, level, domain)
    for at in range(start, end):
        one = net.leaf_list[at]
        if net.taken[one] != 0 or net.holds[one] < min(best_held, tasks):
            continue
        held, used = within(net.rooms, one, most, tasks, count)
        first = net.free[one] < net.free[best] or (net.free[one] == net.free[best] and one < best)
        if held > best_held or (held == best_held > 0 and first):
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


@leaf
def fewest_at(net: Net, level: int, domain: int, most: int, tasks: int) -> int:
    """The fewest nodes of the domain that hold so many tasks."""
    if level == ONE_LEAF:
        return fewest(net.rooms, domain, most, tasks) if net.holds[domain] >= tasks else MANY
    if level == ONE_SPINE:
        return fewest(net.wide, domain, most, tasks)
    return fewest(net.total, domain, most, tasks)


@leaf
def domains_at(net: Net, most: int, level: int) -> int:
    """How many domains the level has; their rooms are counted now."""
    if level == ONE_LEAF:
        return len(net.free)
    if level == ANYWHERE:
        return 1
    gather(net, most)
    return len(net.spine_leaves)


@kernel
def narrowest(net: Net, most: int, need: int, tasks: int) -> tuple[int, int, int, int]:
    """Level, domain, nodes and leaves of steps 1 and 2; level -1 where nothing holds the gang."""
    count = MANY
    last = ANYWHERE
    if need in (ONE_LEAF, ONE_SPINE):
        last = need
    domains = domains_at(net, most, last)
    for domain in range(domains):
        count = min(count, fewest_at(net, last, domain, most, tasks))
    if need == ONE_NODE and count > 1:
        count = MANY
    if count == MANY:
        return -1, -1, 0, 0
    for step in range(3):
        level = ONE_LEAF
        if step > 0:
            level = ONE_SPINE if step == 1 else ANYWHERE
        domains = domains_at(net, most, level)
        best = -1
        best_leaves = MANY
        best_free = MANY
        for domain in range(domains):
            if fewest_at(net, level, domain, most, tasks) > count:
                continue
            leaves = leaves_for(net, most, level, domain, tasks, count)
            free = 0
            if level != ANYWHERE:
                free = net.free[domain] if level == ONE_LEAF else net.wide_free[domain]
            if leaves < best_leaves or (leaves == best_leaves and free < best_free):
                best = domain
                best_leaves = leaves
                best_free = free
        if best >= 0:
            return level, best, count, best_leaves
        if level == last:
            break
    return -1, -1, 0, 0
