"""In which order pods arrive, and how a list of them is inflated to a load that fills a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from scheduler_advisor.engine.packing.errors import PackingError
from scheduler_advisor.engine.packing.shapes import Ints, Pods


def inflated(pods: Pods, ratio: Fraction, capacity_milli: int, seed: int) -> Ints:
    """Positions of pods in a shuffled order, then drawn again until they ask for enough.

    Every pod comes once in random order; then pods are drawn uniformly with replacement until the
    next one would pass ``ratio`` x ``capacity_milli`` (Weng et al., USENIX ATC 2023). A list that
    already asks for more is only shuffled.
    """
    if len(pods) == 0:
        raise PackingError("there are no pods to inflate")
    asked = pods.total_gpu_milli
    if int(asked.sum()) == 0:
        raise PackingError("no pod asks for a GPU, so no load can be reached: leave --inflate out")
    random = np.random.Generator(np.random.PCG64(seed))
    order = [random.permutation(len(pods))]
    room = int(ratio * capacity_milli) - int(asked.sum())
    while room > 0:
        drawn = random.integers(0, len(pods), size=4096)
        used = np.cumsum(asked[drawn])
        fitting = int(np.searchsorted(used, room, side="right"))
        order.append(drawn[:fitting])
        if fitting < len(drawn):
            break
        room -= int(used[-1])
    return np.concatenate(order).astype(np.int64)


def in_order(pods: Pods, names: Sequence[str]) -> Ints:
    """Positions of the named pods, repeats allowed."""
    position = {name: i for i, name in enumerate(pods.name)}
    unknown = [name for name in names if name not in position]
    if unknown:
        raise PackingError(
            f"the order names {len(unknown)} pods that are not in the list, the first is "
            f"{unknown[0]!r}: give the pod list that the order was made from"
        )
    return np.array([position[name] for name in names], dtype=np.int64)
