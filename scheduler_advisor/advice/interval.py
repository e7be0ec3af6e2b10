"""An 80% interval for a weekly amount, from how much the days of the window differ.

Circular moving-block bootstrap over days (Politis and Romano 1992): blocks of a week keep the
weekly rhythm where the window holds at least four of them, single days otherwise. The draws are
the same for every recommendation (one seed), so that amounts can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

DRAWS = 2000
SEED = 20261005
LOW, HIGH = 0.1, 0.9


def weekly_interval(daily: Sequence[float]) -> tuple[float, float]:
    """The 10% and 90% quantile of the amount of a week, given the amount of each day (0 included).

    A single day says nothing about others: its interval reaches down to zero.
    """
    amounts = np.asarray(daily, dtype=float)
    if amounts.size < 2:
        week = float(amounts.sum()) * 7 if amounts.size else 0.0
        return (0.0, week)
    block = 7 if amounts.size >= 28 else 1
    blocks = -(-amounts.size // block)
    rng = np.random.default_rng(SEED)
    starts = rng.integers(0, amounts.size, size=(DRAWS, blocks))
    places = (starts[:, :, None] + np.arange(block)) % amounts.size
    sums = amounts[places.reshape(DRAWS, -1)[:, : amounts.size]].sum(axis=1)
    low, high = np.quantile(sums / amounts.size * 7, [LOW, HIGH])
    return (float(low), float(high))
