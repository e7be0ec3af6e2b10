"""Segments of the sweep added up to slices, in whole micro-GPU-seconds."""

from __future__ import annotations

import numpy as np
from numba import njit

from analytics.ledger.classes import CLASSES, INDEX, LedgerClass, Overlay
from analytics.ledger.kernel import state as k

OVERLAY_INDEX = {name: CLASSES + place for place, name in enumerate(Overlay)}
WIDTH = CLASSES + len(OVERLAY_INDEX)
_TARGET = {
    k.C_FAILED: INDEX[LedgerClass.FAILED],
    k.C_DRAINED: INDEX[LedgerClass.DRAINED],
    k.C_UNKNOWN: INDEX[LedgerClass.UNKNOWN],
    k.C_RESERVED: INDEX[LedgerClass.RESERVED],
    k.C_CPU: INDEX[LedgerClass.STRANDED_CPU],
    k.C_MEM: INDEX[LedgerClass.STRANDED_MEM],
    k.C_LOW: OVERLAY_INDEX[Overlay.STRANDED_LOW],
    k.C_HIGH: OVERLAY_INDEX[Overlay.STRANDED_HIGH],
    k.C_ROGUE: INDEX[LedgerClass.UNATTRIBUTED],
    k.C_FREE: INDEX[LedgerClass.FREE],
    k.C_GANG: INDEX[LedgerClass.GANG_WAIT],
    k.C_CPU_REQUEST: INDEX[LedgerClass.STRANDED_CPU],
    k.C_MEM_REQUEST: INDEX[LedgerClass.STRANDED_MEM],
    k.C_SHAPE: INDEX[LedgerClass.STRANDED_SHAPE],
    k.C_TOPOLOGY: INDEX[LedgerClass.STRANDED_TOPOLOGY],
    k.C_ORDER: INDEX[LedgerClass.POLICY_BLOCKED],
    k.C_LIMIT: INDEX[LedgerClass.POLICY_BLOCKED],
    k.C_FILLABLE: OVERLAY_INDEX[Overlay.FILLABLE],
}
_TARGETS = np.array([_TARGET[code] for code in range(len(_TARGET))], np.int64)


def post(segments: k.Array, bounds: k.Array, pools: int) -> k.Array:
    """``posts[pool, slot, class or overlay]`` of all segments."""
    posts = np.zeros((pools, bounds.shape[0] - 1, WIDTH), np.int64)
    _post(segments, bounds, _TARGETS, INDEX[LedgerClass.FREE], posts)
    return posts


@njit(cache=True)
def _post(segments: k.Array, bounds: k.Array, targets: k.Array, free: int, posts: k.Array) -> None:
    for i in range(segments.shape[0]):
        pool, at, end, code, gpus = (
            segments[i, 0],
            segments[i, 1],
            segments[i, 2],
            segments[i, 3],
            segments[i, 4],
        )
        ripe = segments[i, 6] if code == k.C_ORDER else at
        slot = np.searchsorted(bounds, at, "right") - 1
        while at < end:
            stop = min(end, bounds[slot + 1])
            young = min(max(ripe - at, 0), stop - at)
            posts[pool, slot, targets[code]] += gpus * (stop - at - young)
            # A job that fits only just now is the scheduler's next step, not its failing.
            posts[pool, slot, free] += gpus * young
            at = stop
            slot += 1
