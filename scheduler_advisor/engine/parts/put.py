"""Putting one task on a node, its GPUs taken island by island."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.bits import ONE
from scheduler_advisor.engine.live.compiled import kernel
from scheduler_advisor.engine.parts.net import (
    ISLAND,
    Net,
)
from scheduler_advisor.engine.place import take_general, take_plain
from scheduler_advisor.engine.shadow import SH_REST_SLACK, SH_SLACK, cost_of
from scheduler_advisor.engine.world import (
    ALL_GPU,
    EXCLUSIVE,
    GROUP,
    MARK,
    S_CPU,
    S_FLAGS,
    S_GPU,
    S_MEM,
    S_PLAIN,
    S_REST_CPU,
    S_REST_GPU,
    S_REST_MEM,
    S_TASKS,
    TASKS,
    WHOLE,
    Book,
    Buckets,
    Classes,
    Held,
    Nodes,
    Rules,
    Shadow,
)


@kernel
def whole_bits(nodes: Nodes, node: int, size: int, gpus: int) -> int:
    """Takes whole GPUs of the node: from the island with the least free that has enough, else
    from the emptiest islands in turn; returns their bits."""
    bits: Any = 0 * ONE
    total = nodes.table[node, ALL_GPU]
    left = gpus
    while left > 0:
        best = -1
        best_free = 0
        first = 0
        while first < total:
            free = 0
            for one in range(first, min(first + size, total)):
                free += 1 if nodes.share[node, one] == WHOLE else 0
            enough = free >= left
            if free > 0 and (
                best < 0
                or (enough and (best_free < left or free < best_free))
                or (not enough and best_free < left and free > best_free)
            ):
                best = first
                best_free = free
            first += size
        for one in range(best, min(best + size, total)):
            if left > 0 and nodes.share[node, one] == WHOLE:
                nodes.share[node, one] = 0
                bits |= ONE << one
                left -= 1
    return bits


@kernel
def put(
    nodes: Nodes,
    buckets: Buckets,
    shadow: Shadow,
    shapes: Any,
    classes: Classes,
    held: Held,
    book: Book,
    rules: Rules,
    net: Net,
    shape: int,
    entry: int,
    task: int,
    node: int,
    stamp: int,
    guard: int,
) -> int:
    """One task is on the node from now; 0 where the promise to the head forbids it."""
    rest = task == shapes[shape, S_TASKS]
    gpu = shapes[shape, S_REST_GPU if rest else S_GPU]
    cpu = shapes[shape, S_REST_CPU if rest else S_CPU]
    mem = shapes[shape, S_REST_MEM if rest else S_MEM]
    flags = shapes[shape, S_FLAGS]
    if guard != 0:
        main_cost, rest_cost = cost_of(
            nodes, shadow, shapes, classes, held, rules, node, gpu, cpu, mem, 0, flags, -1
        )
        if main_cost > shadow.number[SH_SLACK] or rest_cost > shadow.number[SH_REST_SLACK]:
            return 0
        shadow.number[SH_SLACK] -= main_cost
        shadow.number[SH_REST_SLACK] -= rest_cost
    nodes.table[node, MARK] = stamp
    book.node[entry + task] = node
    size = net.of_group[nodes.table[node, GROUP], ISLAND]
    if shapes[shape, S_PLAIN] != 0:
        take_plain(nodes, buckets, rules.most, node, gpu, cpu, mem)
    elif rules.shares != 0 and 0 < size < nodes.table[node, ALL_GPU] and flags & EXCLUSIVE == 0:
        book.gpu[entry + task] = whole_bits(nodes, node, size, gpu)
        nodes.table[node, TASKS] += 1
        take_plain(nodes, buckets, rules.most, node, gpu, cpu, mem)
    else:
        gpus = take_general(
            nodes, buckets, rules.most, rules.shares, node, gpu, cpu, mem, 0, flags, -1
        )
        if rules.shares != 0:
            book.gpu[entry + task] = gpus
    return 1
