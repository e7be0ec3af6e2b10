"""The fidelity grade: five measures, each with its bounds and the reason for them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scheduler_advisor.calibration.compare import LEAST_JOBS, Comparison


class Grade(StrEnum):
    """A to D as measured; NONE: see `Ungraded`."""

    A = "A"
    B = "B"
    C = "C"
    D = "D"
    NONE = "none"

    @property
    def promises(self) -> bool:
        """Whether a saving may be said as a point; D and ungraded give ranges only."""
        return self in (Grade.A, Grade.B, Grade.C)


class Ungraded(StrEnum):
    """Why there is no grade; the sentence is in the message files under ``fidelity.<name>``."""

    NO_STARTS = "no_starts"
    FEW_JOBS = "few_jobs"
    NO_QUEUE = "no_queue"


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest value for A, B and C; above the last it is D."""

    measure: str
    limits: tuple[float, float, float]
    reason: str


BOUNDS = (
    Bound("mean_wait_error", (0.10, 0.25, 0.50),
          "published simulators are off by 0.8 to 9.2% in mean completion time on hardware; "
          "beyond a half the replay explains less than it leaves out"),
    Bound("tail_factor", (1.25, 1.75, 3.0),
          "p95 of the class of the median job: a goal in hours is judged by it, and a factor of 3 "
          "turns an hour into a morning"),
    Bound("wait_rank_disorder", (0.2, 0.4, 0.7),
          "1 - rank correlation of waits: who waits longer than whom; start order alone is close "
          "to submit order anywhere"),
    Bound("occupancy_rms", (0.03, 0.06, 0.12),
          "of installed GPUs: the saving is a difference of occupancy, and few changes are worth "
          "more than a tenth of a cluster"),
    Bound("makespan_error", (0.02, 0.05, 0.115),
          "published: 1.2 to 11.5% against hardware"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mark:
    """One measure with its value and the grade that it alone would give."""

    measure: str
    value: float
    grade: Grade
    limits: tuple[float, float, float]
    reason: str


def marks_of(found: Comparison) -> list[Mark]:
    """Every measure's own grade."""
    values = {
        "mean_wait_error": found.mean_wait_error,
        "tail_factor": found.tail_factor,
        "wait_rank_disorder": 1 - found.wait_rank_correlation,
        "occupancy_rms": found.occupancy_rms,
        "makespan_error": found.makespan_error,
    }
    return [
        Mark(bound.measure, values[bound.measure], _of(values[bound.measure], bound.limits),
             bound.limits, bound.reason)
        for bound in BOUNDS
    ]  # fmt: skip


def ungraded(found: Comparison | None) -> Ungraded | None:
    """Why this comparison carries no grade; None: it carries one."""
    if found is None:
        return Ungraded.NO_STARTS
    if found.jobs < LEAST_JOBS:
        return Ungraded.FEW_JOBS
    return None if found.queue_formed else Ungraded.NO_QUEUE


def grade_of(found: Comparison, marks: list[Mark]) -> Grade:
    """The worst of the marks; NONE where there is nothing to grade by."""
    if ungraded(found) is not None:
        return Grade.NONE
    order = tuple(Grade)
    return max((mark.grade for mark in marks), key=order.index)


def _of(value: float, limits: tuple[float, float, float]) -> Grade:
    for grade, limit in zip((Grade.A, Grade.B, Grade.C), limits, strict=True):
        if value <= limit:
            return grade
    return Grade.D
