"""Whether a week's workload is still the one that advice was made for, and what has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from scheduler_advisor.past import Past

# From which relative change on, and why: a change of policy that pays at load 1 stops paying at
# about 0.6 to 0.7 on the planted clusters; a quarter leaves a margin to that.
BOUND = 0.25
TEAM_SHARE = 0.2  # of GPU-hours that moved between teams: a fifth is more than a busy month


@dataclass(frozen=True, slots=True)
class Workload:
    """A window's workload in four numbers and the teams' shares of GPU-hours."""

    arrivals_per_day: float
    mean_gpus: float
    median_run_s: float
    load: float
    teams: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Shift:
    """One thing that changed: its name, before and after."""

    what: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Last advice that a later window does not bear out, and what has shifted between the two;
    nothing: it merely pays no longer."""

    subject: str
    shifts: tuple[Shift, ...]


def workload_of(past: Past) -> Workload:
    """Of the jobs submitted in the window."""
    own, jobs = past.judged, past.jobs
    gpus = past.gpus_held[own]
    hours = gpus * jobs.run[own] / 3600
    total = float(hours.sum()) or 1.0
    codes = jobs.team.codes[own]
    teams = {
        name: float(hours[codes == place].sum()) / total
        for place, name in enumerate(jobs.team.names)
    }
    size = max(past.cluster.total_gpus * past.days * 24, 1.0)
    return Workload(
        arrivals_per_day=float(own.sum()) / max(past.days, 1e-9),
        mean_gpus=float(gpus.mean()) if len(gpus) else 0.0,
        median_run_s=float(np.median(jobs.run[own])) if own.any() else 0.0,
        load=float(hours.sum()) / size, teams=teams,
    )  # fmt: skip


def shifts(before: Workload, after: Workload) -> list[Shift]:
    """What has changed by more than the bounds; empty: the same workload."""
    found = []
    for what in ("arrivals_per_day", "mean_gpus", "median_run_s", "load"):
        a, b = getattr(before, what), getattr(after, what)
        if abs(b - a) > BOUND * max(abs(a), 1e-9):
            found.append(Shift(what, a, b))
    names = {*before.teams, *after.teams}
    moved = sum(abs(after.teams.get(n, 0.0) - before.teams.get(n, 0.0)) for n in names) / 2
    if moved > TEAM_SHARE:
        found.append(Shift("teams", 0.0, moved))
    return found
