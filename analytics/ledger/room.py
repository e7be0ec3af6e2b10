"""Which pools are claimed beyond what is installed at some time."""

from __future__ import annotations

import numpy as np

from analytics.ledger.fleet import Timeline
from analytics.ledger.kernel.state import Array

Claims = tuple[Array, Array, Array, Array]
"""pool, t0, t1, GPUs; clipped to the window."""


def crowded_pools(claims: Claims, installed: list[Timeline], span: tuple[int, int]) -> Array:
    """The pools without room for all of their claims at all times of the window."""
    pool, t0, t1, gpus = claims
    table = np.array(
        [(place, *row) for place, timeline in enumerate(installed) for row in timeline], np.int64
    ).reshape(-1, 4)
    table = table[(table[:, 1] < span[1]) & (table[:, 2] > span[0])]
    there, begin, end = (
        table[:, 0],
        np.maximum(table[:, 1], span[0]),
        np.minimum(table[:, 2], span[1]),
    )
    where = np.concatenate([pool, pool, there, there])
    at = np.concatenate([t0, t1, begin, end])
    step = np.concatenate([gpus, -gpus, -table[:, 3], table[:, 3]])
    order = np.lexsort((at, where))
    where, at, step = where[order], at[order], step[order]
    # The steps of a pool add up to nothing, so that one running sum serves all of them.
    over = np.cumsum(step) > 0
    last = np.ones(where.shape[0], np.bool_)
    last[:-1] = (where[1:] != where[:-1]) | (at[1:] != at[:-1])
    return np.unique(where[over & last])
