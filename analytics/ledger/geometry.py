"""MIG geometry: slices of a board that no profile can use any more beside the instances in use.

An instance takes compute slices and memory slices, and may begin only at some of the latter:
NVIDIA, Multi-Instance GPU User Guide, "Supported MIG Profiles" and "MIG placements". Two 3g
instances leave a compute slice of an A100 that has no memory left, for instance.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Any

from collector.store import Work

# compute slices, memory slices, where it may begin
_SEVEN = (
    (1, 1, (0, 1, 2, 3, 4, 5, 6)), (1, 2, (0, 2, 4, 6)), (2, 2, (0, 2, 4)), (3, 4, (0, 4)),
    (4, 4, (0,)), (7, 8, (0,)),
)  # fmt: skip
_FOUR = ((1, 1, (0, 1, 2, 3)), (2, 2, (0, 2)), (4, 4, (0,)))
_BOARDS = {7: _SEVEN, 4: _FOUR}
"""By compute slices of the board: A100, H100, H200, B200 have 7, the A30 has 4."""

_MEMORY = {7: 8, 4: 4}
_ROWS = """
SELECT m.gpu_uuid, m.mig_uuid, max(m.gpu_slices) AS slices, max(m.placement_start) AS start,
  max(m.mem_mib) AS mem_mib, max(d.mem_total_mib) AS total_mib FROM mig_instance m
LEFT JOIN device d ON d.cluster = m.cluster AND d.gpu_uuid = m.gpu_uuid
WHERE m.cluster = ? AND m.gpu_uuid IN (SELECT unnest(CAST(? AS VARCHAR[]))) GROUP BY ALL"""


@dataclass(frozen=True, slots=True)
class Instance:
    """Compute slices of an instance and the memory slices that it takes, as bits."""

    slices: int
    memory: int


@cache
def usable_slices(slices: int, free: int, memory: int) -> int:
    """How many of ``free`` compute slices of a board can still be used in memory slices that are
    not among the bits of ``memory``."""
    best = 0
    for compute, size, starts in _BOARDS[slices]:
        if compute > free:
            continue
        for start in starts:
            bits = ((1 << size) - 1) << start
            if not bits & memory:
                rest = usable_slices(slices, free - compute, memory | bits)
                best = max(best, compute + rest)
        if best == free:
            break
    return best


def stranded_slices(slices: int, used: list[Instance]) -> int:
    """Compute slices that are neither used nor usable."""
    free = slices - sum(instance.slices for instance in used)
    memory = 0
    for instance in used:
        memory |= instance.memory
    return max(free, 0) - usable_slices(slices, max(free, 0), memory)


class Boards:
    """The instances of some GPUs by their names; one without a known place is left out."""

    def __init__(self, work: Work, cluster: str, gpus: list[str]) -> None:
        self._rows: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        for row in work.rows(_ROWS, [cluster, gpus]) if gpus else []:
            if row["start"] is not None and row["slices"] in _SLICES:
                self._rows[row["gpu_uuid"]][row["mig_uuid"]] = row

    def stranded(self, gpu: str, model: str, per_gpu: int, migs: set[str]) -> int:
        """Units of the GPU (it has ``per_gpu``) that are stranded while these instances are held; 0
        where the facts do not place all of them."""
        slices = 4 if "a30" in model.lower() else 7
        rows = self._rows.get(gpu, {})
        used = [_instance(rows[mig], _MEMORY[slices]) for mig in sorted(migs) if mig in rows]
        whole = sum(instance.slices for instance in used) <= slices and per_gpu % slices == 0
        if not used or len(used) < len(migs) or not whole:
            return 0
        return stranded_slices(slices, used) * per_gpu // slices


_SLICES = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}
"""Compute slices of an instance -> memory slices, where its memory is not known."""


def _instance(row: dict[str, Any], memory: int) -> Instance:
    size = min(_SLICES[row["slices"]], memory)
    if row["mem_mib"] and row["total_mib"]:
        size = max(round(memory * row["mem_mib"] / row["total_mib"]), 1)
    return Instance(row["slices"], ((1 << size) - 1) << row["start"])
