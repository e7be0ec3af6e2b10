"""What a weekly report says, before it is put into a language and a form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from scheduler_advisor.advice.advise import Advice
from scheduler_advisor.advice.recommendation import PriceUse
from scheduler_advisor.goals import Goals
from scheduler_advisor.measurements.bundle import Measurements
from scheduler_advisor.window import Window

if TYPE_CHECKING:
    from scheduler_advisor.replayed import Replayed


@dataclass(frozen=True, slots=True)
class ClassTotal:
    """Observed GPU-hours and cost of one ledger class; cost None = not priced."""

    name: str
    gpu_hours: float
    cost: Decimal | None


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """GPU-hours and cost that one cause held back, as observed."""

    name: str
    gpu_hours: float
    cost: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklyReport:
    """One report over one window. ``enough`` False = too little is known to advise."""

    report_id: str
    made_at: datetime
    window: Window
    cluster: str | None
    demo: bool
    currency: str | None
    coverage_ratio: float | None
    prices: PriceUse
    classes: list[ClassTotal]
    cost: Decimal | None
    accounted_hours: float
    diagnosis: list[Bottleneck]
    advice: Advice
    measurements: Measurements
    goals: Goals
    goals_version: str
    replays: Sequence[Replayed] = ()

    @property
    def enough(self) -> bool:
        """A day of accounted time at least."""
        return self.accounted_hours >= 24

    @property
    def installed_gpu_hours(self) -> float:
        """All classes together."""
        return sum(entry.gpu_hours for entry in self.classes)

    def share(self, *names: str) -> float:
        """Share of installed GPU time in the named classes."""
        hours = sum(entry.gpu_hours for entry in self.classes if entry.name in names)
        return hours / self.installed_gpu_hours if self.installed_gpu_hours else 0.0
