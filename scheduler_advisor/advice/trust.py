"""What the record of earlier predictions of a kind says of the next one's interval.

A kind that was never judged here counts as even (one half by Laplace's rule): nothing changes. One
whose predictions failed gets an interval as many times wider as it held less often than that; one
that held keeps its own: it was wide enough. The rank is `advice.order.trust`.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from scheduler_advisor.advice.recommendation import Recommendation, Saving
from scheduler_advisor.followup.verdict import Confidence

EVEN = 0.5


def with_record(rec: Recommendation, known: Confidence | None) -> Recommendation:
    """The recommendation with the record of its kind."""
    if known is None or not known.judged:
        return replace(rec, confidence=known)
    return replace(rec, confidence=known, saving=widened(rec.saving, known))


def widened(saving: Saving, known: Confidence) -> Saving:
    """The same saving with its interval as wide as the record asks for."""
    by = max(1.0, EVEN / known.ratio)
    said = f"; {known.held} of {known.judged} earlier predictions of this kind held here"
    if by == 1.0:
        return replace(saving, method=saving.method + said)
    low, high = saving.gpu_hours_low, saving.gpu_hours_high
    middle = (low + high) / 2 if saving.range_only else saving.gpu_hours
    return replace(
        saving,
        gpu_hours_low=middle - (middle - low) * by, gpu_hours_high=middle + (high - middle) * by,
        low=_away(saving, saving.low, by), high=_away(saving, saving.high, by),
        method=f"{saving.method}{said}, so the interval is {by:.1f} times as wide",
    )  # fmt: skip


def _away(saving: Saving, bound: Decimal | None, by: float) -> Decimal | None:
    """The bound, ``by`` times as far from the middle."""
    if bound is None or saving.low is None or saving.high is None:
        return bound
    middle = (saving.low + saving.high) / 2 if saving.cost is None else saving.cost
    return middle + (bound - middle) * Decimal(repr(by))
