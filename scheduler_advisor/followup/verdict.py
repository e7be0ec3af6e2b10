"""Whether a prediction held, and how far a kind of advice can be trusted here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from scheduler_advisor.followup.realised import SHIFT, Realised

NOTHING = 0.01  # of what was promised: so little is nothing won


class Verdict(StrEnum):
    """What came of it. WITHDRAWN: the load has shifted, the comparison says nothing. UNSEEN: what
    the advice was about is not in the ledger's class of it, on either side."""

    KEPT = "kept"  # inside the predicted interval
    BETTER = "better"
    WORSE = "worse"  # below the interval, but something was won
    FAILED = "failed"  # nothing was won, or it got worse
    HELPED = "helped"  # nothing was predicted (an operator's own change), and it helped
    NO_EFFECT = "no_effect"
    HURT = "hurt"
    WITHDRAWN = "withdrawn"
    TOO_EARLY = "too_early"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class Predicted:
    """GPU-hours a week with the 80% interval, as the report said."""

    point: float
    low: float
    high: float


def verdict(found: Realised, predicted: Predicted | None) -> Verdict:
    """The judgement; too few days and a shifted load come before everything."""
    if not found.enough:
        return Verdict.TOO_EARLY
    if abs(found.load_shift) > SHIFT:
        return Verdict.WITHDRAWN
    return _unpredicted(found) if predicted is None else _predicted(found, predicted)


def _predicted(found: Realised, predicted: Predicted) -> Verdict:
    if found.unseen:
        return Verdict.UNSEEN
    if found.gpu_hours <= NOTHING * abs(predicted.point):
        return Verdict.FAILED
    if found.gpu_hours > predicted.high:
        return Verdict.BETTER
    return Verdict.KEPT if found.gpu_hours >= predicted.low else Verdict.WORSE


def _unpredicted(found: Realised) -> Verdict:
    if found.low > 0:
        return Verdict.HELPED
    return Verdict.HURT if found.high < 0 else Verdict.NO_EFFECT


@dataclass(frozen=True, slots=True)
class Confidence:
    """Of one kind of advice at this site: judged cases, those that held, and the share to expect.

    Laplace's rule of succession: (held + 1) / (judged + 2); a kind never judged has one half.
    """

    kind: str
    judged: int
    held: int

    @property
    def ratio(self) -> float:
        """The share of the next cases to expect to hold."""
        return (self.held + 1) / (self.judged + 2)


_HELD = (Verdict.KEPT, Verdict.BETTER, Verdict.HELPED)
_JUDGED = (*_HELD, Verdict.WORSE, Verdict.FAILED, Verdict.NO_EFFECT, Verdict.HURT)


def confidences(outcomes: Sequence[tuple[str, str]]) -> list[Confidence]:
    """By kind, from (kind, verdict) of every judged case."""
    kinds = sorted({kind for kind, _ in outcomes})
    return [
        Confidence(
            kind,
            sum(k == kind and v in _JUDGED for k, v in outcomes),
            sum(k == kind and v in _HELD for k, v in outcomes),
        )
        for kind in kinds
    ]
