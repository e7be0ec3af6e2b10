"""How long groups of jobs and teams wait, seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.search.fairness import LEAST_JOBS

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
TEAMS = 20  # the busiest teams are told apart


@dataclass(frozen=True, slots=True)
class WorkGroup:
    """Jobs that people speak of together; ``goal_s``: the p95 wait that is still accepted."""

    name: str
    mask: Flags
    goal_s: float | None = None


@dataclass(frozen=True, slots=True)
class ClassWait:
    """How long one `WorkGroup` waits; None where none of it started in the window."""

    name: str
    mean_s: float | None
    p95_s: float | None
    goal_s: float | None = None


def class_wait(wait: Floats, judged: Flags, group: WorkGroup) -> ClassWait:
    """Of the group's jobs that are judged."""
    own = judged & group.mask
    return ClassWait(group.name, of(wait, own, None), of(wait, own, 0.95), group.goal_s)


def team_waits(
    wait: Floats, judged: Flags, team: NDArray[np.int64], names: Sequence[str]
) -> tuple[ClassWait, ...]:
    """Waits of the teams with at least `LEAST_JOBS` jobs, at most `TEAMS` of them."""
    if len(names) < 2 or not len(team):
        return ()
    counts = np.bincount(team[judged], minlength=len(names))
    codes = np.argsort(-counts, kind="stable")[:TEAMS]
    return tuple(
        class_wait(wait, judged, WorkGroup(names[code], team == code))
        for code in codes.tolist()
        if counts[code] >= LEAST_JOBS
    )


def of(wait: Floats, own: Flags, at: float | None) -> float | None:
    """The mean of those jobs, or a quantile; None where there are none."""
    if not own.any():
        return None
    return mean(wait[own]) if at is None else quantile(wait[own], at)


def mean(values: Floats) -> float:
    """Of what is no NaN; 0 where nothing is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else 0.0


def quantile(values: Floats, at: float) -> float:
    """Of what is no NaN; 0 where nothing is."""
    known = values[~np.isnan(values)]
    return float(np.quantile(known, at)) if len(known) else 0.0
