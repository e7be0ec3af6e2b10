"""Which GPUs of a node a pod takes. Sets of GPUs are bit masks by index."""

from __future__ import annotations

from scheduler_advisor.engine.packing.compiled import leaf
from scheduler_advisor.engine.packing.shapes import Ints


@leaf
def tightest(free: Ints, n: int, gpus: int, need: int, milli: int) -> int:
    """The ``need`` GPUs with the least idle part that still fits, lowest index on ties; 0 = none.

    For whole GPUs these are the first idle ones.
    """
    mask = 0
    for _ in range(need):
        best = -1
        for g in range(gpus):
            if free[n, g] < milli or (mask >> g) & 1:
                continue
            if best < 0 or free[n, g] < free[n, best]:
                best = g
        if best < 0:
            return 0
        mask |= 1 << best
    return mask


@leaf
def drawn(free: Ints, n: int, gpus: int, milli: int, draw: float) -> int:
    """One GPU, uniform among those with ``milli`` idle, by ``draw`` in [0, 1)."""
    fitting = 0
    for g in range(gpus):
        if free[n, g] >= milli:
            fitting += 1
    index = min(int(draw * fitting), fitting - 1)
    for g in range(gpus):
        if free[n, g] >= milli:
            if index == 0:
                return 1 << g
            index -= 1
    return 0


@leaf
def shift(free: Ints, n: int, gpus: int, mask: int, milli: int) -> None:
    """Add ``milli`` (negative: take) to every GPU of the set."""
    for g in range(gpus):
        if (mask >> g) & 1:
            free[n, g] += milli
