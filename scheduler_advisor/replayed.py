"""What the replay of one cluster's window found, before it is put into a report."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_advisor.calibration.calibrate import Calibration
from scheduler_advisor.calibration.grade import Grade
from scheduler_advisor.diagnosis.diagnose import Diagnosis
from scheduler_advisor.followup.shift import Withdrawn
from scheduler_advisor.handover.snippet import Target
from scheduler_advisor.not_resumable import NotResumable
from scheduler_advisor.search.search import Found


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """``withheld``: why nothing is advised from the replay (a key of the messages), with its
    numbers; then only what was worked out before is there. ``withdrawn``: last advice that no
    longer holds, and what has shifted since."""

    cluster: str
    calibration: Calibration | None = None
    diagnosis: Diagnosis | None = None
    found: Found | None = None
    target: Target | None = None
    withheld: str | None = None
    params: tuple[tuple[str, float | str], ...] = ()
    not_resumable: tuple[NotResumable, ...] = ()
    withdrawn: tuple[Withdrawn, ...] = ()
    cpu_s: float = 0.0

    @property
    def grade(self) -> Grade:
        """The fidelity that is printed on everything that follows."""
        return self.calibration.grade if self.calibration else Grade.NONE
