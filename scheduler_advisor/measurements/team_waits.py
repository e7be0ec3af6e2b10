"""Waits by the team that waited, from the org map as it was when each job became eligible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from collector.store import Work
from scheduler_advisor.advice.teams import Teams
from scheduler_advisor.measurements.quantiles import quantile
from scheduler_advisor.measurements.waits import JobWait


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamWaits:
    """Waits of one team's started jobs in seconds; ``team`` None = no mapping."""

    team: str | None
    jobs: int
    p50_s: float | None
    p95_s: float | None
    max_s: float | None
    waited_gpu_hours: float
    not_started: int


def by_team(work: Work, waits: Iterable[JobWait]) -> list[TeamWaits]:
    """One row per team, most waited GPU-hours first."""
    teams = Teams(work)
    groups: dict[str | None, list[JobWait]] = defaultdict(list)
    for wait in waits:
        team = teams.of(
            wait.cluster,
            wait.eligible_at,
            account=wait.account,
            user_name=wait.user_name,
            queue=wait.queue,
        )
        groups[team].append(wait)
    rows = [_row(team, jobs) for team, jobs in groups.items()]
    return sorted(rows, key=lambda row: (-row.waited_gpu_hours, row.team or ""))


def _row(team: str | None, jobs: list[JobWait]) -> TeamWaits:
    done = sorted(job.wait_s for job in jobs if job.started)
    return TeamWaits(
        team=team,
        jobs=len(done),
        p50_s=quantile(done, 0.5),
        p95_s=quantile(done, 0.95),
        max_s=done[-1] if done else None,
        waited_gpu_hours=sum(job.wait_s * job.gpus for job in jobs) / 3600,
        not_started=len(jobs) - len(done),
    )
