"""All measurements of one window together."""

from __future__ import annotations

from dataclasses import dataclass

from collector.store import Work
from scheduler_advisor.measurements.activity import ActivityShare, activity_distribution
from scheduler_advisor.measurements.breakers import BreakerReport, breakers
from scheduler_advisor.measurements.checkpoints import CheckpointClass, checkpoint_classes
from scheduler_advisor.measurements.quantiles import quantile
from scheduler_advisor.measurements.repeats import Repeat, varying_repeats
from scheduler_advisor.measurements.spread import RunSpread, run_spreads
from scheduler_advisor.measurements.waits import (
    JobWait,
    WaitGroup,
    by_hour,
    by_queue_and_size,
    distribution,
    job_waits,
)
from scheduler_advisor.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitSummary:
    """Mean and quantiles of the waits of all started jobs, in seconds; None where none started."""

    started: int
    not_started: int
    mean_s: float | None
    p50_s: float | None
    p95_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """The four measurements, the distribution behind the average, and the repeated runs."""

    waits: list[JobWait]
    wait_groups: list[WaitGroup]
    wait_hours: list[WaitGroup]
    wait_counts: list[int]
    wait_summary: WaitSummary
    spreads: list[RunSpread]
    breakers: BreakerReport
    checkpoints: list[CheckpointClass]
    repeats: list[Repeat]
    activity: list[ActivityShare]


def measure(work: Work, window: Window, cluster: str | None = None) -> Measurements:
    """Everything that is measured whatever the advice says."""
    waits = job_waits(work, window, cluster)
    return Measurements(
        waits=waits, wait_groups=by_queue_and_size(waits), wait_hours=by_hour(waits, window.zone),
        wait_counts=distribution(waits), wait_summary=_summary(waits),
        spreads=run_spreads(work, window, cluster), breakers=breakers(work, window, cluster),
        checkpoints=checkpoint_classes(work, window, cluster),
        repeats=varying_repeats(work, window, cluster),
        activity=activity_distribution(work, window, cluster),
    )  # fmt: skip


def _summary(waits: list[JobWait]) -> WaitSummary:
    done = sorted(wait.wait_s for wait in waits if wait.started)
    return WaitSummary(
        started=len(done), not_started=len(waits) - len(done),
        mean_s=sum(done) / len(done) if done else None, p50_s=quantile(done, 0.5),
        p95_s=quantile(done, 0.95),
    )  # fmt: skip
