"""One definition of a quantile for every table of the report."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor


def quantile(ascending: Sequence[float], share: float) -> float | None:
    """Linear interpolation between closest ranks (type 7 of Hyndman and Fan); None of nothing."""
    if not ascending:
        return None
    place = (len(ascending) - 1) * share
    low = floor(place)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (ascending[high] - ascending[low]) * (place - low)
