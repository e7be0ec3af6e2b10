"""What each policy thinks of putting a pod on a node; higher is better, never negative.

The scores are integers as in a Kubernetes scheduler, so ties are common and their rule matters.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from scheduler_advisor.engine.packing.compiled import leaf
from scheduler_advisor.engine.packing.devices import shift, tightest
from scheduler_advisor.engine.packing.fragmentation import unusable
from scheduler_advisor.engine.packing.policy import (
    BEST_FIT,
    DOT_PRODUCT,
    FGD,
    FGD_EXACT,
    GPU_CLUSTERING,
    GPU_PACKING,
)
from scheduler_advisor.engine.packing.shapes import MILLI, Kinds, State
from scheduler_advisor.engine.packing.typical import Typical

TOP = 100
"""The best score of a node, except for ``fgd-exact``."""


class Largest(NamedTuple):
    """The largest node of the cluster, to bring CPU and GPU to one scale."""

    cpu: int
    gpu_milli: int


@leaf
def fits(kinds: Kinds, k: int, state: State, n: int) -> bool:
    """Whether a pod of kind ``k`` fits on node ``n`` now."""
    if state.cpu[n] < kinds.cpu[k] or state.mem[n] < kinds.mem[k]:
        return False
    wanted = kinds.models[k]
    if wanted != 0 and (wanted & state.model[n]) == 0:
        return False
    need = kinds.gpus[k]
    if need == 0:
        return True
    milli = kinds.milli[k]
    for g in range(state.gpus[n]):
        if state.free[n, g] >= milli:
            need -= 1
    return bool(need <= 0)


@leaf
def graded(before: int, after: int, total: int) -> int:
    """FGD's integer score of a change of F's numerator: 100 x sigmoid of the fall in whole GPUs."""
    fall = (before - after) / total
    return int(TOP / (1.0 + math.exp(-fall / MILLI)))


@leaf
def least_growth(
    exact: bool,
    typical: Typical,
    kinds: Kinds,
    k: int,
    state: State,
    n: int,
    before: int,
    most: int,
) -> tuple[int, int]:
    """FGD: score and GPUs of the choice on node ``n`` that lets F grow least, first GPU on ties.

    ``exact`` keeps the unrounded order of the change of F in place of the integer score. The pod
    must fit; ``before`` is the node's numerator of F now, ``most`` the GPU of the largest node.
    """
    free = state.free
    gpus = state.gpus[n]
    cpu = state.cpu[n] - kinds.cpu[k]
    need = kinds.gpus[k]
    milli = kinds.milli[k]
    offset = typical.total * most  # no F of a node is larger, so no value is negative
    best = -1
    best_mask = 0
    shared = need == 1 and milli < MILLI
    for g in range(gpus if shared else 1):
        mask = 0
        if shared:
            if free[n, g] < milli:
                continue
            seen = False
            for earlier in range(g):
                if free[n, earlier] == free[n, g]:
                    seen = True
                    break
            if seen:  # same idle part, same F, and the first one wins
                continue
            mask = 1 << g
        elif need > 0:
            mask = tightest(free, n, gpus, need, milli)
        shift(free, n, gpus, mask, -milli)
        after = unusable(typical, cpu, free, n, gpus, state.model[n])
        shift(free, n, gpus, mask, milli)
        value = before - after + offset if exact else graded(before, after, typical.total)
        if value > best:
            best = value
            best_mask = mask
    if gpus == 0:
        best = offset if exact else graded(0, 0, typical.total)
    return best, best_mask


@leaf
def best_fit(kinds: Kinds, k: int, state: State, n: int, idle: int, largest: Largest) -> int:
    """Least left over: CPU and GPU weigh half each, relative to the largest node."""
    over = (state.cpu[n] - kinds.cpu[k]) / largest.cpu * 0.5
    over += (idle - kinds.gpus[k] * kinds.milli[k]) / largest.gpu_milli * 0.5
    return int((1.0 - over) * TOP)


@leaf
def dot_product(kinds: Kinds, k: int, state: State, n: int, idle: int, largest: Largest) -> int:
    """Small where what is idle and what is asked for point the same way (Tetris, reversed)."""
    dot = (state.cpu[n] / largest.cpu) * (kinds.cpu[k] / largest.cpu)
    asked = kinds.gpus[k] * kinds.milli[k]
    dot += (idle / largest.gpu_milli) * (asked / largest.gpu_milli)
    return int(TOP * (1.0 - dot / 2.0))


@leaf
def gpu_packing(kinds: Kinds, k: int, state: State, n: int) -> int:
    """Shared GPUs first (over 50), then idle GPUs of a used node (34-50), then an empty node."""
    if kinds.gpus[k] == 0:
        return 0
    free = state.free
    gpus = state.gpus[n]
    idle_gpus = 0
    for g in range(gpus):
        idle_gpus += free[n, g] == MILLI
    if idle_gpus == gpus:
        return max(TOP // 3 - idle_gpus, idle_gpus)
    mask = tightest(free, n, gpus, kinds.gpus[k], kinds.milli[k])
    opened = 0
    percent = 0
    for g in range(gpus):
        if (mask >> g) & 1:
            opened += free[n, g] == MILLI
            percent += free[n, g] * TOP // MILLI
    if opened > 0:
        return max(TOP // 2 - opened, TOP // 3)
    return max(TOP - percent // 10, TOP // 2)


@leaf
def shape_tag(kinds: Kinds, k: int) -> int:
    """The bit of a GPU shape: 1 = shared, 2 << (g - 1) = g whole GPUs, 0 = no GPU."""
    gpus = kinds.gpus[k]
    if gpus == 0:
        return 0
    return 1 if gpus == 1 and kinds.milli[k] < MILLI else 1 << gpus


@leaf
def gpu_clustering(kinds: Kinds, k: int, state: State, n: int, idle: int, most: int) -> int:
    """Pods of one GPU shape together: same shape only, same among others, empty node, the rest."""
    tag = shape_tag(kinds, k)
    if tag == 0:
        return 0
    used = TOP // 4 * (most - idle) // most
    tags = state.tags[n]
    if tags & tag:
        return used + (TOP * 3 // 4 if tags == tag else TOP // 2)
    return used + TOP // 4 if tags == 0 else used


@leaf
def node_score(
    policy: int,
    typical: Typical,
    kinds: Kinds,
    k: int,
    state: State,
    n: int,
    before: int,
    largest: Largest,
) -> int:
    """The score of node ``n`` for a pod of kind ``k`` that fits there."""
    if policy in (FGD, FGD_EXACT):
        return least_growth(
            policy == FGD_EXACT, typical, kinds, k, state, n, before, largest.gpu_milli
        )[0]
    if policy == GPU_PACKING:
        return gpu_packing(kinds, k, state, n)
    idle = 0
    for g in range(state.gpus[n]):
        idle += state.free[n, g]
    if policy == BEST_FIT:
        return best_fit(kinds, k, state, n, idle, largest)
    if policy == DOT_PRODUCT:
        return dot_product(kinds, k, state, n, idle, largest)
    if policy == GPU_CLUSTERING:
        return gpu_clustering(kinds, k, state, n, idle, largest.gpu_milli)
    return 0
