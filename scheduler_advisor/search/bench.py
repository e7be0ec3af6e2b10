"""One past on which every candidate is tried, with the same jobs and the same seeds for all."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.errors import EngineError
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.goals import Goals, WorkClass
from scheduler_advisor.past import Past
from scheduler_advisor.search.alter import SAME, World, altered
from scheduler_advisor.search.effects import Effects, Groups, effects
from scheduler_advisor.search.fairness import UNFAIR, jain, team_slowdowns
from scheduler_advisor.search.waits import WorkGroup

URGENT_SHARE = 0.25  # work of the higher priorities counts as urgent only while it is the minority
URGENT_WAIT_S = 900.0  # a quarter of an hour: a person who waits longer does something else
# Without a goal of the operator's: one urgent job in fifty. A team with fifty of them a week then
# meets it every week; the long waits are what people remember.
URGENT_AT, GOAL_AT = 0.98, 0.95
STARVED = 2.0  # times the slowdown of the (lower) middle team
BIG_SHARE = 0.05  # on a pool without nodes a big job asks for this part of the cluster


@dataclass(frozen=True, slots=True)
class Bench:
    """The past, its groups of jobs, and how the urgent ones are known: goals, latency, priority.

    ``urgent_goal_s``: the wait at the quantile ``groups.urgent_at`` that is still fine for them.
    ``input_error``: the replay's own relative error in blocked GPU time against reality.
    """

    past: Past
    groups: Groups
    urgent_by: str
    urgent_goal_s: float = URGENT_WAIT_S
    input_error: float = 0.0


@dataclass(frozen=True, slots=True)
class Trial:
    """One replay to run: a policy in a world."""

    policy: Policy
    world: World = SAME


@dataclass(frozen=True, slots=True)
class Refused:
    """A trial that the simulator does not take."""

    reason: str


def bench_of(past: Past, goals: Goals, input_error: float = 0.0) -> Bench:
    """The bench, with groups as the goals name them."""
    jobs = past.jobs
    urgent, by = _urgent(jobs, goals)
    nodes = past.cluster.gpus
    whole = int(nodes.max(initial=1)) if len(nodes) > 1 else int(nodes.sum() * BIG_SHARE) + 1
    big = jobs.gpus >= max(whole, 2)
    big &= ~urgent
    classes = _classes(jobs, goals, urgent, big)
    at = GOAL_AT if by == "goals" else URGENT_AT
    groups = Groups(urgent, big, _waiting_cost(jobs, goals), jobs.team.codes, classes, at)
    starved = _starved(past)
    groups = replace(groups, starved=starved, team_names=jobs.team.names)
    return Bench(past, groups, by, _goal(goals), input_error)


def _starved(past: Past) -> NDArray[np.bool_]:
    """Jobs of teams that really waited far longer than others, where teams fare unequally."""
    slow = team_slowdowns(past)
    index = jain(list(slow.values()))
    if index is None or index >= UNFAIR:
        return np.zeros(len(past.jobs), bool)
    usual = sorted(slow.values())[(len(slow) - 1) // 2]
    starved = [team for team, mean in slow.items() if mean >= STARVED * usual]
    return np.isin(past.jobs.team.codes, starved)


def run_trial(bench: Bench, trial: Trial) -> Effects:
    """Replay and measure; runs in whatever process it is sent to."""
    past = replace(altered(bench.past, trial.world), wait_s=None)
    return effects(past, simulate(past.jobs, past.cluster, trial.policy), bench.groups)


def attempt(bench: Bench, trial: Trial) -> Effects | Refused:
    """`run_trial`, or why the simulator does not take this trial: a part that these nodes or jobs
    do not go with, or more nodes to remove than there are of the kind."""
    try:
        return run_trial(bench, trial)
    except EngineError as refused:
        return Refused(str(refused))


def _classes(
    jobs: Jobs, goals: Goals, urgent: NDArray[np.bool_], big: NDArray[np.bool_]
) -> tuple[WorkGroup, ...]:
    """The classes of the goals; without any: urgent, big and other work."""
    own = [
        WorkGroup(entry.name, class_mask(jobs, entry),
                  entry.max_wait_p95.total_seconds() if entry.max_wait_p95 else None)
        for entry in goals.work_class
    ]  # fmt: skip
    named = (
        np.logical_or.reduce([group.mask for group in own]) if own else np.zeros(len(jobs), bool)
    )
    parts = (("urgent", urgent), ("big", big), ("other", ~urgent & ~big))
    rest = [WorkGroup(name, mask & ~named) for name, mask in parts]
    return tuple(group for group in (*own, *rest) if group.mask.any())


def class_mask(jobs: Jobs, entry: WorkClass) -> NDArray[np.bool_]:
    """The jobs of one class of the goals."""
    asked = entry.match.model_dump(exclude_none=True)
    columns = {"team": jobs.team, "user": jobs.user, "qos": jobs.qos, "queue": jobs.partitions}
    mask = np.ones(len(jobs), bool)
    for key, value in asked.items():
        if key not in columns:
            return np.zeros(len(jobs), bool)  # the replay knows no job names
        column = columns[key]
        wanted = [place for place, name in enumerate(column.names) if value in name.split("|")]
        mask &= np.isin(column.codes, wanted)
    return mask


def _urgent(jobs: Jobs, goals: Goals) -> tuple[NDArray[np.bool_], str]:
    none = np.zeros(len(jobs), bool)
    classes = [entry for entry in goals.work_class if entry.max_wait_p95 is not None]
    if classes:
        mask = np.logical_or.reduce([class_mask(jobs, entry) for entry in classes])
        return mask, "goals"
    if jobs.latency_sensitive.any():
        return jobs.latency_sensitive > 0, "latency"
    levels = np.unique(jobs.priority)
    if 1 < len(levels) <= 20:  # a priority that differs from job to job is no class of work
        high = jobs.priority >= levels[-1]
        if high.mean() <= URGENT_SHARE:
            return high, "priority"
    return none, "none"


def _goal(goals: Goals) -> float:
    """The strictest wait that the goals still accept, or `URGENT_WAIT_S`."""
    limits = [entry.max_wait_p95.total_seconds() for entry in goals.work_class
              if entry.max_wait_p95 is not None]  # fmt: skip
    return min(limits, default=URGENT_WAIT_S)


def _waiting_cost(jobs: Jobs, goals: Goals) -> NDArray[np.float64]:
    cost = np.zeros(len(jobs))
    for entry in goals.work_class:
        if entry.waiting_cost_per_hour is not None:
            cost[class_mask(jobs, entry)] = float(entry.waiting_cost_per_hour)
    return cost
