"""Fair tree: every leaf's fair-share factor from usage over shares, level by level."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.live.tuples import Q_DEPTH, Q_PARENT, Q_USED, Q_WEIGHT, Tree

MILLION = 1_000_000
UNUSED = 1e300  # level fair share of a queue without usage


@leaf
def above_at(row: Any, queue: int, depth: int) -> int:
    """The queue itself or the one above it at `depth`."""
    while row[queue, Q_DEPTH] > depth:
        queue = row[queue, Q_PARENT]
    return queue


@leaf
def compare(tree: Tree, one: int, other: int) -> int:
    """1: `one` is served before `other`; -1: after; 0: they are equal at every level."""
    row = tree.row
    depth = min(row[one, Q_DEPTH], row[other, Q_DEPTH])
    for level in range(1, depth + 1):
        mine = tree.level[above_at(row, one, level)]
        theirs = tree.level[above_at(row, other, level)]
        if mine > theirs:
            return 1
        if mine < theirs:
            return -1
    if row[one, Q_DEPTH] != row[other, Q_DEPTH]:
        return 1 if row[one, Q_DEPTH] < row[other, Q_DEPTH] else -1
    return 0


@leaf
def set_levels(tree: Tree) -> None:
    """Level fair share = share among siblings over usage among siblings."""
    row = tree.row
    for queue in range(len(row)):
        weights = 0
        usage = 0
        for at in range(tree.child_start[queue], tree.child_start[queue + 1]):
            weights += row[tree.children[at], Q_WEIGHT]
            usage += row[tree.children[at], Q_USED]
        for at in range(tree.child_start[queue], tree.child_start[queue + 1]):
            child = tree.children[at]
            used = row[child, Q_USED]
            if row[child, Q_WEIGHT] == 0:
                tree.level[child] = 0.0
            elif used == 0:
                tree.level[child] = UNUSED
            else:
                tree.level[child] = (float(row[child, Q_WEIGHT]) * float(usage)) / (
                    float(weights) * float(used)
                )


@kernel
def fair_tree(tree: Tree) -> None:
    """Ranks the leaves; those equal at every level share a rank."""
    set_levels(tree)
    rank = tree.rank
    for at in range(1, len(rank)):
        queue = rank[at]
        to = at
        while to > 0 and compare(tree, queue, rank[to - 1]) > 0:
            rank[to] = rank[to - 1]
            to -= 1
        rank[to] = queue
    before = 0
    for at in range(len(rank)):
        if at > 0 and compare(tree, rank[at - 1], rank[at]) != 0:
            before = at
        tree.factor[rank[at]] = MILLION * (len(rank) - before) // len(rank)
