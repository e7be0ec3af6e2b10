"""A tournament tree per pod kind: the best node for it without looking at every node.

Node ``i`` of the tree has the children ``2i`` and ``2i + 1``; the leaves start at half the length.
A leaf holds the node's key, -1 where the pod does not fit. ``tied`` holds how many leaves below
share the best key; it is empty (length 0) where the first one wins anyway.
"""

from __future__ import annotations

from scheduler_advisor.engine.packing.compiled import leaf
from scheduler_advisor.engine.packing.shapes import Ints


@leaf
def rebuild(keys: Ints, tied: Ints, k: int) -> None:
    """All inner nodes from the leaves."""
    half = keys.shape[1] // 2
    if tied.shape[1] > 0:
        for i in range(half, 2 * half):
            tied[k, i] = 1
    for i in range(half - 1, 0, -1):
        keys[k, i] = max(keys[k, 2 * i], keys[k, 2 * i + 1])
        if tied.shape[1] > 0:
            tied[k, i] = tied_below(keys, tied, k, i)


@leaf
def tied_below(keys: Ints, tied: Ints, k: int, i: int) -> int:
    """How many leaves under tree node ``i`` share its key."""
    count = 0
    if keys[k, 2 * i] == keys[k, i]:
        count += tied[k, 2 * i]
    if keys[k, 2 * i + 1] == keys[k, i]:
        count += tied[k, 2 * i + 1]
    return int(count)


@leaf
def put(keys: Ints, tied: Ints, k: int, node: int, key: int) -> None:
    """Give a leaf a new key and repair the path above it as far as it changes."""
    i = keys.shape[1] // 2 + node
    if keys[k, i] == key:
        return
    keys[k, i] = key
    i >>= 1
    while i > 0:
        best = max(keys[k, 2 * i], keys[k, 2 * i + 1])
        if tied.shape[1] > 0:
            keys[k, i] = best
            tied[k, i] = tied_below(keys, tied, k, i)
        elif keys[k, i] == best:
            return
        keys[k, i] = best
        i >>= 1


@leaf
def first_best(keys: Ints, k: int) -> int:
    """The lowest leaf with the best key."""
    half = keys.shape[1] // 2
    i = 1
    while i < half:
        i = 2 * i if keys[k, 2 * i] == keys[k, i] else 2 * i + 1
    return int(i - half)


@leaf
def drawn_best(keys: Ints, tied: Ints, k: int, draw: float) -> int:
    """A leaf with the best key, uniform among them by ``draw`` in [0, 1)."""
    half = keys.shape[1] // 2
    index = min(int(draw * tied[k, 1]), int(tied[k, 1]) - 1)
    i = 1
    while i < half:
        best = keys[k, i]
        i = 2 * i
        if keys[k, i] == best:
            if index < tied[k, i]:
                continue
            index -= tied[k, i]
        i += 1
    return int(i - half)
