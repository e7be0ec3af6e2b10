"""The network as arrays for kernels, and where a job's GPUs lie in it."""

from __future__ import annotations

from typing import Any, NamedTuple

from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.parts.allreduce import PPM, STEP_COUNT, US
from scheduler_advisor.engine.place import tasks_of
from scheduler_advisor.engine.world import (
    ALL_GPU,
    GROUP,
    M_LEFT,
    S_GPU,
    S_REST_GPU,
    S_TASKS,
    Book,
    Nodes,
    Rows,
    Runs,
)

# Columns of Net.of_group
IN_LEAF, IN_SPINE, IN_RACK, ISLAND = 0, 1, 2, 3
# Entries of Net.need: the widest level that one domain must be of; 0: no such rule.
ANYWHERE, ONE_NODE, ONE_LEAF, ONE_SPINE, ONE_RACK = 0, 1, 2, 3, 4


class Net(NamedTuple):
    """Groups of nodes lie in one leaf each. Everything after `message` is scratch or state."""

    of_group: Any  # [group] -> leaf, spine, rack, GPUs of an island (0: the node)
    spine_of: Any  # [leaf]
    need: Any  # [class] -> ANYWHERE ... ONE_RACK
    links: Any  # [group, 2, step] -> 10^9 bytes/s; microseconds
    comm: Any  # [job] thousandths of run time in communication
    base: Any  # [job] run time on the best placement
    best: Any  # [shape] seconds of an all-reduce there
    message: float
    racks: int
    slow: Any  # [job] slowdown of the last placement in millionths
    rooms: Any  # [leaf, tasks] -> nodes with room for so many
    free: Any  # [leaf] free GPUs
    wide: Any  # [domain, tasks] the same, of the level looked at
    wide_free: Any
    taken: Any  # [leaf] 1: used in this search
    holds: Any  # [leaf] tasks that its nodes have room for in all
    total: Any  # [0, tasks] nodes anywhere with room for so many
    spine_start: Any  # [spine] -> where its leaves begin in
    leaf_list: Any  # leaves, spine by spine
    group_start: Any  # [leaf] -> where its groups begin in
    group_list: Any  # groups, leaf by leaf, in order
    node_gpus: Any  # [node] GPUs of the job being measured
    node_islands: Any
    leaf_nodes: Any  # [leaf]
    spine_leaves: Any  # [spine]
    most: Any  # [step]
    least: Any
    rate: Any  # [step]
    hop: Any


@leaf
def _note(net: Net, step: int, count: int) -> None:
    net.most[step] = max(net.most[step], count)
    net.least[step] = min(net.least[step], count)


@kernel
def measured(
    nodes: Nodes, net: Net, shapes: Any, rows: Rows, book: Book, shares: int, job: int
) -> float:
    """Seconds of one all-reduce of the job where its tasks lie now."""
    shape = rows.shape[job]
    entry = rows.place[job]
    tasks = tasks_of(shapes, shape)
    for step in range(STEP_COUNT):
        net.most[step] = 0
        net.least[step] = 1 << 40
        net.rate[step] = 1e30
        net.hop[step] = 0.0
    for task in range(tasks):
        node = book.node[entry + task]
        net.node_gpus[node] = 0
        net.node_islands[node] = 0
        where = nodes.table[node, GROUP]
        net.leaf_nodes[net.of_group[where, IN_LEAF]] = 0
        net.spine_leaves[net.of_group[where, IN_SPINE]] = 0
    total = 0
    count = 0
    for task in range(tasks):
        node = book.node[entry + task]
        gpus = shapes[shape, S_REST_GPU] if task == shapes[shape, S_TASKS] else shapes[shape, S_GPU]
        total += gpus
        where = nodes.table[node, GROUP]
        if net.node_gpus[node] == 0:
            count += 1
            in_leaf = net.of_group[where, IN_LEAF]
            if net.leaf_nodes[in_leaf] == 0:
                net.spine_leaves[net.of_group[where, IN_SPINE]] += 1
            net.leaf_nodes[in_leaf] += 1
            for step in range(STEP_COUNT):
                net.rate[step] = min(net.rate[step], net.links[where, 0, step])
                net.hop[step] = max(net.hop[step], net.links[where, 1, step])
        net.node_gpus[node] += gpus
    spines = 0
    for task in range(tasks):
        node = book.node[entry + task]
        if net.node_gpus[node] == 0:
            continue
        where = nodes.table[node, GROUP]
        size = net.of_group[where, ISLAND]
        islands = 1
        if shares == 0 or size == 0 or size >= nodes.table[node, ALL_GPU]:
            _note(net, 0, net.node_gpus[node])
        else:
            islands = _by_island(nodes, net, book, entry, tasks, node, size)
        _note(net, 1, islands)
        net.node_gpus[node] = 0
        in_leaf = net.of_group[where, IN_LEAF]
        if net.leaf_nodes[in_leaf] != 0:
            _note(net, 2, net.leaf_nodes[in_leaf])
            net.leaf_nodes[in_leaf] = 0
        in_spine = net.of_group[where, IN_SPINE]
        if net.spine_leaves[in_spine] != 0:
            _note(net, 3, net.spine_leaves[in_spine])
            net.spine_leaves[in_spine] = 0
            spines += 1
    _note(net, 4, spines)
    return took(net, total, count)


@kernel
def _by_island(
    nodes: Nodes, net: Net, book: Book, entry: int, tasks: int, node: int, size: int
) -> int:
    """Counts the job's GPUs in each island of the node; returns how many islands it is in."""
    found = 0
    first = 0
    while first < nodes.table[node, ALL_GPU]:
        count = 0
        for task in range(tasks):
            if book.node[entry + task] == node:
                for gpu in range(first, min(first + size, nodes.table[node, ALL_GPU])):
                    count += (book.gpu[entry + task] >> gpu) & 1
        if count != 0:
            _note(net, 0, count)
            found += 1
        first += size
    return found


@leaf
def _ring(members: int, message: float, rate: float, hop: float) -> float:
    hops = 2 * (members - 1)
    return hops * hop * US + hops / members * message / (rate * 1e9)


@leaf
def _tree(members: int, message: float, rate: float, hop: float) -> float:
    levels = 0
    while (1 << levels) < members:
        levels += 1
    return 2 * levels * hop * US + 2 * message / (rate * 1e9)


@kernel
def took(net: Net, gpus: int, nodes: int) -> float:
    """`allreduce_s` of allreduce.py for the spread noted in `net`, operation by operation."""
    if gpus <= 1:
        return 0.0
    total = 0.0
    share = net.message
    slowest = -1
    below = net.message
    inside = 0.0
    for step in range(STEP_COUNT):
        members = net.most[step]
        if members > 1:
            cost = min(
                _ring(members, share, net.rate[step], net.hop[step]),
                _tree(members, share, net.rate[step], net.hop[step]),
            )
            total += cost
            if step > 1:
                if slowest < 0 or net.rate[step] <= net.rate[slowest]:
                    slowest = step
            else:
                inside += cost
        share /= net.least[step]
        if step == 1:
            below = share
    if slowest < 0:
        return total
    return min(total, inside + _ring(nodes, below, net.rate[slowest], net.hop[slowest]))


@kernel
def slow_down(
    nodes: Nodes,
    net: Net,
    shapes: Any,
    rows: Rows,
    runs: Runs,
    book: Book,
    shares: int,
    interruptible: int,
    job: int,
) -> None:
    """The job's run time becomes what it is on the nodes that it was just given."""
    best = net.best[rows.shape[job]]
    new = PPM
    if net.comm[job] > 0 and best > 0.0:
        here = measured(nodes, net, shapes, rows, book, shares, job)
        if here > best:
            new = PPM + int(net.comm[job] * 1000 * (here / best - 1.0) + 0.5)
    old = net.slow[job]
    if new != old:
        run = -((-net.base[job] * new) // PPM)
        if interruptible != 0:
            left = runs.more[job, M_LEFT]
            runs.more[job, M_LEFT] = run if left == rows.run[job] else -((-left * new) // old)
        rows.run[job] = run
        net.slow[job] = new
