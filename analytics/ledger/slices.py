"""The cuts of a window: hours, and every instant at which a price or a mapping changes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numba import njit

from analytics.ledger.kernel.state import Array
from analytics.window import HOUR_US


def cuts(since: int, until: int, changes: Iterable[int]) -> Array:
    """Bounds of the slices of ``[since, until)``: each slice lies in one hour and meets no
    change."""
    hours = range(-(-since // HOUR_US) * HOUR_US, until, HOUR_US)
    inside = {t for t in changes if since < t < until}
    return np.array(sorted({since, until, *hours} | inside), np.int64)


@njit(cache=True)
def cut(t0: Array, t1: Array, bounds: Array) -> tuple[Array, Array, Array, Array]:
    """Cut intervals at the bounds: per part the interval's number, the slice, and its own ends."""
    size = 0
    for i in range(t0.shape[0]):
        size += np.searchsorted(bounds, t1[i]) - np.searchsorted(bounds, t0[i], "right") + 1
    which = np.empty(size, np.int64)
    slot = np.empty(size, np.int64)
    begin = np.empty(size, np.int64)
    end = np.empty(size, np.int64)
    n = 0
    for i in range(t0.shape[0]):
        s = np.searchsorted(bounds, t0[i], "right") - 1
        at = t0[i]
        while at < t1[i]:
            stop = min(t1[i], bounds[s + 1])
            which[n], slot[n], begin[n], end[n] = i, s, at, stop
            at = stop
            s += 1
            n += 1
    return which[:n], slot[:n], begin[:n], end[:n]
