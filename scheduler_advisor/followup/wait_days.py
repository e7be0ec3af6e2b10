"""The days of advice that promised shorter waits: hours that its group waited, from real starts.

The group is that of the search. Who belongs to it is decided by the days before the change, and
holds after it: a team that no longer starves is the success, and not somebody else's group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.followup.realised import Days
from scheduler_advisor.goals import Goals
from scheduler_advisor.integrals import integral
from scheduler_advisor.past import DAY_S, Past
from scheduler_advisor.search.bench import Bench, bench_of
from scheduler_advisor.search.candidate import Gain

Flags = NDArray[np.bool_]


def wait_days(before: Past, after: Past, gain: Gain, goals: Goals) -> tuple[Days, Days]:
    """Hours of waiting and GPU-hours asked for a day, on both sides of the change."""
    bench = bench_of(before, goals)
    own = {Gain.URGENT: bench.groups.urgent, Gain.BIG: bench.groups.big}
    group = own.get(gain, bench.groups.starved)
    return (_days(before, group), _days(after, _same_group(bench, after, gain, goals)))


def _same_group(bench: Bench, after: Past, gain: Gain, goals: Goals) -> Flags:
    """The jobs after the change that belong to the group of the days before."""
    jobs = after.jobs
    if gain is Gain.TEAM:
        return np.isin(np.array(jobs.team.names, str)[jobs.team.codes], _starved(bench))
    if gain is Gain.URGENT and bench.urgent_by == "priority":
        level = int(bench.past.jobs.priority[bench.groups.urgent].min())
        return np.asarray(jobs.priority >= level)
    groups = bench_of(after, goals).groups
    return groups.urgent if gain is Gain.URGENT else groups.big


def _starved(bench: Bench) -> list[str]:
    """The teams that waited far longer than others."""
    team = bench.past.jobs.team
    return [team.names[code] for code in np.unique(team.codes[bench.groups.starved]).tolist()]


def _days(past: Past, group: Flags) -> Days:
    edges = np.arange(past.since, past.until + 1, DAY_S, dtype=float)
    one = group.astype(float)
    waited = integral(past.jobs.eligible, one, edges) - integral(past.real_start, one, edges)
    return Days(np.diff(waited) / 3600, asked_by_day(past, edges))


def asked_by_day(past: Past, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """GPU-hours of the jobs submitted between each two ``edges``."""
    work = past.gpus_held * (past.real_end - past.real_start) / 3600
    asked: NDArray[np.float64] = np.histogram(past.jobs.submit, bins=edges, weights=work)[0]
    return asked
