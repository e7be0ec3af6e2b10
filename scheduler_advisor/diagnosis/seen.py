"""Who held what where, as arrays; what is not measured is None."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Seen:
    """One entry per job and node that it held something on.

    ``job`` and ``node`` are places in the past's jobs and cluster. ``idle_ratio``: of held GPU
    time without a kernel; ``topology_ratio``: of held GPU time lost to placements that were slower
    than the same job elsewhere (measured on repeated jobs); ``lost_ratio``: of held GPU time thrown
    away by stops, as checkpoint marks prove it.
    """

    job: NDArray[np.int64]
    node: NDArray[np.int64]
    gpus: NDArray[np.float64]
    cpu_milli: NDArray[np.float64]
    mem_mib: NDArray[np.float64]
    idle_ratio: float | None = None
    topology_ratio: float | None = None
    lost_ratio: float | None = None
