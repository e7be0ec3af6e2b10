"""Before and after one change, adjusted for load: capacity that stood free while jobs waited.

The measure is the report's own: blocked GPU-hours a week (free while somebody waited), from real
starts. A busier week blocks more whatever the policy, so days are compared at equal load: over the
days before and after, blocked hours are fitted as a + b x load + c x (after the change), and -c is
what the change brought. The interval comes from the block bootstrap over days, refitted each time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAST_DAYS = 7  # on each side: with less, weekdays and weekends are not both there
DRAWS = 400
SEED = 20261005
SHIFT = 0.25  # load a quarter off: the weeks are not the same cluster any more


@dataclass(frozen=True, slots=True)
class Days:
    """One value per day: GPU-hours blocked, and GPU-hours asked for (by day of submit)."""

    blocked: Floats
    asked: Floats


@dataclass(frozen=True, slots=True)
class Realised:
    """GPU-hours a week won back (negative: lost) with its 80% interval; loads in GPU-hours a day.

    ``enough`` False: too few days on a side, and the amounts mean nothing. ``unseen``: nothing of
    what is counted, before or after.
    """

    gpu_hours: float
    low: float
    high: float
    load_before: float
    load_after: float
    days_before: int
    days_after: int
    unseen: bool = False

    @property
    def enough(self) -> bool:
        """A week on each side."""
        return min(self.days_before, self.days_after) >= LEAST_DAYS

    @property
    def load_shift(self) -> float:
        """Relative change of the load."""
        return self.load_after / self.load_before - 1 if self.load_before else 0.0


def realised(before: Days, after: Days) -> Realised:
    """What changed between the two, at equal load."""
    point = _effect(before, after)
    low = high = point
    sizes = len(before.blocked), len(after.blocked)
    if min(sizes) >= LEAST_DAYS:
        rng = np.random.default_rng(SEED)
        draws = [_effect(_drawn(before, rng), _drawn(after, rng)) for _ in range(DRAWS)]
        low, high = (float(bound) for bound in np.quantile(draws, [0.1, 0.9]))
    return Realised(
        gpu_hours=point, low=min(low, point), high=max(high, point),
        load_before=_mean(before.asked), load_after=_mean(after.asked),
        days_before=sizes[0], days_after=sizes[1],
        unseen=not before.blocked.any() and not after.blocked.any(),
    )  # fmt: skip


def _effect(before: Days, after: Days) -> float:
    """Minus the coefficient of the change, a week; without it where load does not vary."""
    blocked = np.concatenate([before.blocked, after.blocked])
    load = np.concatenate([before.asked, after.asked])
    changed = np.concatenate([np.zeros(len(before.blocked)), np.ones(len(after.blocked))])
    if not len(before.blocked) or not len(after.blocked):
        return 0.0
    columns = [np.ones(len(blocked)), changed]
    if float(load.std()) > 1e-9:
        columns.append(load - load.mean())
    fitted = np.linalg.lstsq(np.stack(columns, axis=1), blocked, rcond=None)[0]
    return round(-float(fitted[1]) * 7, 6)  # a fit's own dust is no gain


def _drawn(days: Days, rng: np.random.Generator) -> Days:
    """Circular blocks of days, about a quarter of the window long."""
    size = len(days.blocked)
    block = max(1, min(7, size // 4))
    starts = rng.integers(0, size, size=math.ceil(size / block))
    places = ((starts[:, None] + np.arange(block)) % size).reshape(-1)[:size]
    return Days(days.blocked[places], days.asked[places])


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0
