"""An 80% interval for a weekly amount, from how much the days of the window differ.

It is that of a later window of the same length, as for replayed changes (see `search.interval`),
since a saving is judged on weeks to come. Measured on planted faults: see docs/proofs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler_advisor.search.interval import later_window


def weekly_interval(daily: Sequence[float]) -> tuple[float, float]:
    """The 10% and 90% bound of the amount of a week, given the amount of each day (0 included).

    A single day says nothing about others: its interval reaches down to zero. What is won each day
    is never below zero, so neither is the bound.
    """
    amounts = np.asarray(daily, dtype=float)
    if amounts.size < 2:
        week = float(amounts.sum()) * 7 if amounts.size else 0.0
        return (0.0, week)
    _, low, high = later_window(amounts)
    return (max(0.0, low) if (amounts >= 0).all() else low, high)
