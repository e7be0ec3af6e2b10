"""Fragmentation F: the idle GPU of a node that typical tasks could not use there.

F = sum over typical tasks of popularity x unusable idle GPU (Weng et al., USENIX ATC 2023). A task
that does not fit, or needs no GPU, leaves all of it unusable; one that fits leaves the GPUs whose
idle part is smaller than what it needs of one. The kernels keep the integer numerator, popularity
as pod counts: dividing late keeps equal states exactly equal.
"""

from __future__ import annotations

from scheduler_advisor.engine.packing.compiled import driver, leaf
from scheduler_advisor.engine.packing.shapes import Ints, State
from scheduler_advisor.engine.packing.typical import Typical


@leaf
def unusable(typical: Typical, cpu: int, free: Ints, n: int, gpus: int, model: int) -> int:
    """Numerator of F of one node: thousandths of a GPU x pods; ``free`` is by node and GPU.

    Computed as all that is idle less what the tasks that fit could use: a task that fits can use
    every GPU with its ``milli`` idle.
    """
    left = 0
    for g in range(gpus):
        left += free[n, g]
    usable = 0
    if left > 0:
        for level in range(len(typical.level) - 1):
            start = typical.level[level]
            milli = typical.milli[start]
            fitting = 0
            large = 0
            for g in range(gpus):
                if free[n, g] >= milli:
                    fitting += 1
                    large += free[n, g]
            if fitting == 0:  # larger shares fit nowhere either
                break
            for t in range(start, typical.level[level + 1]):
                if typical.cpu[t] > cpu:
                    break
                wanted = typical.models[t]
                if typical.gpus[t] <= fitting and (wanted == 0 or (wanted & model) != 0):
                    usable += typical.pods[t] * large
    return typical.total * left - usable


@driver
def unusable_by_node(typical: Typical, state: State, out: Ints) -> int:
    """Fill ``out`` with each node's numerator of F and return their sum."""
    total = 0
    for n in range(len(state.cpu)):
        out[n] = unusable(typical, state.cpu[n], state.free, n, state.gpus[n], state.model[n])
        total += out[n]
    return total
