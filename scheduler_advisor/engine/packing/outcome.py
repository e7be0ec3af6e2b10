"""What a packing run shows: where every pod went, and how allocation and fragmentation grew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.packing.policy import PackPolicy
from scheduler_advisor.engine.packing.shapes import Ints, Nodes, Pods


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """State when demand first reached ``demand_ratio`` of the installed GPUs."""

    demand_ratio: float
    allocated_ratio: float
    fragmentation_milli_gpu: float


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """One run. Arrays are by pod in order of arrival; those "after" have one entry more, the start.

    ``node``: row in ``nodes``, -1 = not placed. ``gpu_mask``: bit i = GPU i of the node.
    """

    pods: Pods
    nodes: Nodes
    policy: PackPolicy
    node: Ints
    gpu_mask: Ints
    demand_milli_after: Ints
    allocated_milli_after: Ints
    fragmentation_milli_after: NDArray[np.float64]
    scores_computed: int
    workload_hash: str
    cluster_hash: str

    @property
    def capacity_milli(self) -> int:
        """Thousandths of a GPU installed."""
        return self.nodes.capacity_milli

    @property
    def placed(self) -> int:
        """Pods that found a node."""
        return int((self.node >= 0).sum())

    @property
    def failed(self) -> int:
        """Pods that found none and were passed over."""
        return len(self.node) - self.placed

    @property
    def allocated_ratio(self) -> float:
        """Allocated over installed thousandths of a GPU at the end."""
        return int(self.allocated_milli_after[-1]) / self.capacity_milli

    def curve(self, step: float = 0.01) -> list[CurvePoint]:
        """Points at every ``step`` of arrived demand over installed GPUs, the last pod included."""
        capacity = self.capacity_milli
        last = len(self.node)
        steps = int(int(self.demand_milli_after[-1]) / (step * capacity)) + 1
        wanted = [i * step * capacity for i in range(steps)]
        at = np.searchsorted(self.demand_milli_after, wanted, side="left")
        rows = sorted({min(int(row), last) for row in at} | {last})
        return [
            CurvePoint(
                int(self.demand_milli_after[row]) / capacity,
                int(self.allocated_milli_after[row]) / capacity,
                float(self.fragmentation_milli_after[row]),
            )
            for row in rows
        ]
