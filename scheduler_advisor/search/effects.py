"""What one replay means for the people of a site, small enough to travel between processes.

Blocked GPU time: at every instant the smaller of free GPUs and GPUs asked for by waiting jobs. It
is what the ledger books as stranded, gang wait and policy blocked: capacity that stood free while
somebody waited. A change wins back the blocked GPU time that it avoids.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.outcome import Outcome
from scheduler_advisor.integrals import blocked_hours, integral
from scheduler_advisor.past import DAY_S, Past, gpus_held
from scheduler_advisor.search.counted import counted_s
from scheduler_advisor.search.waits import (
    ClassWait,
    WorkGroup,
    class_wait,
    mean,
    of,
    quantile,
    team_waits,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Groups:
    """Which jobs are urgent and which are big, and what an hour of waiting costs, per job.

    ``urgent_at``: the quantile of urgent waits that is judged. ``starved``: jobs of teams that
    really waited far longer than others.
    """

    urgent: NDArray[np.bool_]
    big: NDArray[np.bool_]
    cost_per_hour: Floats
    team: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    classes: tuple[WorkGroup, ...] = ()
    urgent_at: float = 0.95
    starved: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    team_names: tuple[str, ...] = ()

    def take(self, order: NDArray[np.intp]) -> Groups:
        """Those of the jobs at ``order``."""
        classes = tuple(replace(group, mask=group.mask[order]) for group in self.classes)
        team = self.team[order] if len(self.team) else self.team
        cost = self.cost_per_hour[order]
        return replace(
            self, urgent=self.urgent[order], big=self.big[order], cost_per_hour=cost, team=team,
            classes=classes, starved=self.starved[order] if len(self.starved) else self.starved,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Effects:
    """Per day of the window: GPU-hours blocked and lost, job-hours waited, and their cost.

    Waits in seconds; None where the group is empty. ``fairness``: Jain's index of the teams' mean
    bounded slowdowns, 1 = all alike. ``blast_gpus``: GPUs in use on the fullest node, mean over
    the window's hours. ``slowed``: GPU-hours that gangs took longer for where they lay.
    ``counted_s``: what the replay costs by its counters. ``urgent_tail_s``: the quantile of urgent
    waits that is judged. ``waits``: per judged job, NaN
    where it never started. ``team_waits``: of the busiest teams, where there are several.
    """

    blocked: Floats
    lost: Floats
    waited: Floats
    urgent_waited: Floats
    big_waited: Floats
    wait_cost: Floats
    mean_wait_s: float
    p95_wait_s: float
    urgent_p95_s: float | None
    urgent_mean_s: float | None
    big_p95_s: float | None
    big_mean_s: float | None
    slowdown: float
    fairness: float
    goodput: float
    blast_gpus: float
    preemptions: int
    not_started: int
    makespan_s: int
    engine_s: float
    counted_s: float
    waits: Floats
    slowed: Floats
    urgent_tail_s: float | None
    class_waits: tuple[ClassWait, ...] = ()
    starved_waited: Floats = field(default_factory=lambda: np.zeros(1))
    starved_p95_s: float | None = None
    team_waits: tuple[ClassWait, ...] = ()

    @property
    def lost_capacity(self) -> Floats:
        """GPU-hours a day that nobody had any use of: blocked, spent on work that was lost, or
        on waiting for a network that a better placement would not have needed."""
        return self.blocked + self.lost + self.slowed


def effects(past: Past, outcome: Outcome, groups: Groups) -> Effects:
    """The effects of ``outcome`` within the window of ``past``."""
    jobs, done = outcome.jobs, outcome.started
    gpus = gpus_held(jobs)
    edges = np.arange(past.since, past.until + DAY_S // 2, DAY_S, dtype=float)
    if edges[-1] < past.until:
        edges = np.append(edges, float(past.until))
    first = np.where(outcome.starts > 0, outcome.first_start, np.int64(1) << 40)
    end = np.where(done, outcome.end, np.int64(1) << 40)
    wait = np.where(outcome.starts > 0, first - jobs.submit, np.nan)
    judged = past.judged
    starved = groups.starved if len(groups.starved) else np.zeros(len(jobs), bool)
    mean_s, p95 = mean(wait[judged]), quantile(wait[judged], 0.95)
    slow = np.maximum((end - jobs.submit) / np.maximum(jobs.run, 10), 1.0)
    fine = judged & done
    return Effects(
        blocked=blocked_hours(outcome, first, end, gpus, edges),
        lost=_lost_by_day(outcome, gpus, edges) + _spent(outcome, past, gpus, edges),
        waited=_waited(jobs.eligible, first, np.ones(len(jobs)), edges),
        urgent_waited=_waited(jobs.eligible, first, groups.urgent.astype(float), edges),
        big_waited=_waited(jobs.eligible, first, groups.big.astype(float), edges),
        wait_cost=_waited(jobs.eligible, first, groups.cost_per_hour, edges),
        mean_wait_s=mean_s,
        p95_wait_s=p95,
        urgent_p95_s=of(wait, judged & groups.urgent, 0.95),
        urgent_mean_s=of(wait, judged & groups.urgent, None),
        big_p95_s=of(wait, judged & groups.big, 0.95),
        big_mean_s=of(wait, judged & groups.big, None),
        slowdown=mean(slow[fine]),
        fairness=_jain(slow[fine], groups.team[fine] if len(groups.team) else groups.team),
        goodput=_goodput(outcome, gpus, past),
        blast_gpus=_fullest(outcome, past),
        preemptions=int(outcome.preemptions.sum()),
        not_started=int((judged & (outcome.starts == 0)).sum()),
        makespan_s=int(outcome.end[done].max(initial=0)) - int(jobs.submit.min()),
        engine_s=outcome.engine_s,
        counted_s=counted_s(outcome),
        waits=wait[judged],
        slowed=_slowed(outcome, gpus, edges),
        urgent_tail_s=of(wait, judged & groups.urgent, groups.urgent_at),
        class_waits=tuple(class_wait(wait, judged, group) for group in groups.classes),
        starved_waited=_waited(jobs.eligible, first, starved.astype(float), edges),
        starved_p95_s=of(wait, judged & starved, 0.95),
        team_waits=team_waits(wait, judged, groups.team, groups.team_names),
    )


def _slowed(outcome: Outcome, gpus: Floats, edges: Floats) -> Floats:
    """GPU-hours beyond the best placement, spread over the time in which they were held."""
    if outcome.slow_ppm is None:
        return np.zeros(len(edges) - 1)
    done = outcome.started
    slow = outcome.slow_ppm[done] / 1e6
    weight = gpus[done] * (slow - 1) / slow
    held = integral(outcome.start[done], weight, edges)
    return np.diff(held - integral(outcome.end[done], weight, edges)) / 3600


def _lost_by_day(outcome: Outcome, gpus: Floats, edges: Floats) -> Floats:
    """GPU-hours of work lost in the replay, on the day of the last start: when it had happened."""
    seconds = outcome.lost_s * gpus
    if not seconds.any():
        return np.zeros(len(edges) - 1)
    return np.histogram(outcome.start, bins=edges, weights=seconds)[0] / 3600


def _spent(outcome: Outcome, past: Past, gpus: Floats, edges: Floats) -> Floats:
    """GPU-hours of writing and reading checkpoints, and of what stops of the past make a job do
    again, spread over the time from its first start to its end."""
    done = outcome.started
    seconds = outcome.overhead_s + _again(outcome, past)
    if not seconds[done].any():
        return np.zeros(len(edges) - 1)
    begun, end = outcome.first_start[done], outcome.end[done]
    weight = (seconds * gpus)[done] / np.maximum(end - begun, 1)
    spent = integral(begun, weight, edges) - integral(end, weight, edges)
    return np.diff(spent) / 3600


def _again(outcome: Outcome, past: Past) -> NDArray[np.int64]:
    """Seconds of each job's run time that are no progress."""
    known = past.checkpoints
    return np.zeros(len(outcome.jobs), np.int64) if known is None else known.again


def _waited(
    since: NDArray[np.int64], until: NDArray[np.int64], weight: Floats, edges: Floats
) -> Floats:
    """Hours of waiting (times ``weight``) between each two ``edges``."""
    return np.diff(integral(since, weight, edges) - integral(until, weight, edges)) / 3600


def _goodput(outcome: Outcome, gpus: Floats, past: Past) -> float:
    """Share of installed GPU time of the window in which work that is done got on; that of a job
    spread over the time from its first start to its end."""
    done = outcome.started
    edges = np.array([past.since, past.until], float)
    begun, end = outcome.first_start[done], outcome.end[done]
    work = ((outcome.jobs.run - _again(outcome, past)) * gpus)[done]
    weight = work / np.maximum(end - begun, 1)
    useful = integral(begun, weight, edges) - integral(end, weight, edges)
    return float(useful[1] - useful[0]) / max(
        outcome.cluster.total_gpus * (past.until - past.since), 1
    )


def _fullest(outcome: Outcome, past: Past) -> float:
    """GPUs in use on the fullest node, mean over 24 instants of the window."""
    nodes = len(outcome.cluster)
    if nodes == 1:
        return float(outcome.cluster.total_gpus)
    jobs, done = outcome.jobs, outcome.started
    tasks = jobs.tasks + (jobs.rest_gpus > 0)
    each = np.where(jobs.gpu_milli > 0, jobs.gpu_milli / 1000, jobs.gpus_per_task)
    most = []
    for at in np.linspace(past.since, past.until, 26)[1:-1]:
        running = np.flatnonzero(done & (outcome.start <= at) & (at < outcome.end))
        counts = tasks[running]
        if not counts.sum():
            most.append(0.0)
            continue
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        places = np.repeat(outcome.place_start[running], counts) + offset
        size = np.repeat(each[running], counts)
        last = offset == np.repeat(counts - 1, counts)
        rest = np.repeat(jobs.rest_gpus[running], counts)
        size = np.where(last & (rest > 0), rest, size)
        used = np.bincount(outcome.place_node[places], weights=size, minlength=nodes)
        most.append(float(used.max()))
    return float(np.mean(most))


def _jain(values: Floats, team: NDArray[np.int64]) -> float:
    if not len(values) or not len(team):
        return 1.0
    counts = np.bincount(team)
    means = (np.bincount(team, weights=values) / np.maximum(counts, 1))[counts > 0]
    return float(means.sum() ** 2 / (len(means) * (means**2).sum()))
