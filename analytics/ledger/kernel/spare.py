"""Memory of GPUs while no run is named for them, slot by slot."""

from __future__ import annotations

import numpy as np

from analytics.ledger.kernel.compiled import leaf
from analytics.ledger.kernel.lookup import (
    M_SPARE,
    V_FULLEST,
    V_LONE,
    V_SLOT,
    V_SPARE,
    Batch,
)
from analytics.ledger.kernel.state import Array


@leaf
def _hand_spare(devices: Array, d: int, spare: Array, at: Array) -> None:
    n = at[M_SPARE]
    spare[n, 0], spare[n, 1] = d, devices[d, V_SLOT]
    spare[n, 2], spare[n, 3] = devices[d, V_SPARE], devices[d, V_FULLEST]
    at[M_SPARE] = n + 1


@leaf
def keep_spare(
    batch: Batch, i: int, d: int, reach: int, tables: tuple[Array, Array, Array], at: Array
) -> None:
    """Memory of a device whose sample names no run, over the time since its last such sample.

    ``tables``: devices, bounds of slots, room for rows.
    """
    devices, bounds, spare = tables
    ts = batch.ts[i]
    a = max(devices[d, V_LONE], ts - reach)
    devices[d, V_LONE] = ts
    ppm = np.int64(np.rint(1e6 * batch.used[i] / batch.total[i]))
    slot = devices[d, V_SLOT]
    if slot >= 0 and bounds[slot] <= a and ts <= bounds[slot + 1]:
        devices[d, V_SPARE] += ts - a
        devices[d, V_FULLEST] = max(devices[d, V_FULLEST], ppm)
        return
    a, end = max(a, bounds[0]), min(ts, bounds[-1])
    if a >= end:
        return
    slot = max(slot, np.int64(0))
    if bounds[slot] > a:
        slot = np.int64(0)
    while bounds[slot + 1] <= a:
        slot += 1
    while a < end:
        if slot != devices[d, V_SLOT]:
            if devices[d, V_SLOT] >= 0:
                _hand_spare(devices, d, spare, at)
            devices[d, V_SLOT], devices[d, V_SPARE], devices[d, V_FULLEST] = slot, 0, 0
        until = min(end, bounds[slot + 1])
        devices[d, V_SPARE] += until - a
        devices[d, V_FULLEST] = max(devices[d, V_FULLEST], ppm)
        a, slot = until, slot + 1
