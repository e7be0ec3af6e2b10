"""Where a change stops paying: the assumption it leans on most, swept until the gain is gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduler_advisor.caps import paths_of
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.live.make_tree import leaves_of
from scheduler_advisor.past import Past
from scheduler_advisor.search.alter import World
from scheduler_advisor.search.bench import Bench, Trial, run_trial
from scheduler_advisor.search.candidate import Candidate, Gain, harmed
from scheduler_advisor.search.catalogue import Part
from scheduler_advisor.search.effects import Effects
from scheduler_advisor.workers import Workers, never

LOADS = (0.5, 0.7, 0.85, 1.15, 1.3)
ESTIMATES = (1.0, 2.0, 5.0, 20.0)
CHECKPOINTS = (0.25, 2.0, 4.0, 8.0, 16.0)
RETURNS = (0.5, 1.5, 2.0, 3.0)  # times as much as the teams that lend hold today
BY_COST = {Part.PREEMPTION, Part.CHECKPOINT, Part.DEFRAGMENTATION}  # lean on what a stop costs
KEEPS = 0.1  # a gain below a tenth of the one promised is gone


@dataclass(frozen=True, slots=True)
class Boundary:
    """The gain per week at each value of an assumption, and where it is gone.

    ``below``/``above``: it pays between these; None = as far as was tried. The value of today is 1
    for load and checkpoint cost (a factor), the history's own limits for estimates. ``unit_s``: the
    seconds that 1 stands for, where they are known: what a checkpoint takes today.
    """

    assumption: str
    values: tuple[float, ...]
    gains: tuple[float, ...]
    above: float | None
    below: float | None
    unit_s: float | None = None

    @property
    def bounded(self) -> bool:
        """Whether it stops paying anywhere that was tried."""
        return self.above is not None or self.below is not None


def boundaries(
    bench: Bench,
    chosen: Sequence[Candidate],
    workers: Workers,
    progress: Callable[[int], None] = lambda done: None,
    cancelled: Callable[[], bool] = never,
) -> dict[str, tuple[Boundary, ...]]:
    """The boundaries of every chosen candidate, by its name."""
    plans = {c.name: _assumptions(c, bench.past.jobs) for c in chosen}
    trials: dict[Trial, Effects | None] = {}
    for found in chosen:
        for _, worlds in plans[found.name]:
            for world in worlds:
                trials[_in(found.trial, world)] = None
                trials[Trial(found.before.policy, world)] = None
    work = workers.each(bench, run_trial, list(trials), cancelled)
    for done, (trial, effects) in enumerate(work, 1):
        trials[trial] = effects
        progress(done)
    takes = _checkpoint_s(bench.past)
    return {
        c.name: tuple(
            replace(_boundary(c, plan, trials), unit_s=takes if plan[0] == "checkpoint" else None)
            for plan in plans[c.name]
        )
        for c in chosen
    }


def _checkpoint_s(past: Past) -> float | None:
    """What a checkpoint takes, mean over those that are written; None where none is known."""
    known = past.checkpoints
    if known is None or not known.known.any():
        return None
    own = known.known
    return float(np.average(known.cost[own], weights=known.held[own] / known.every[own]))


def _in(trial: Trial, world: World) -> Trial:
    own = trial.world
    kept = {name: getattr(own, name) for name in ("alter", "nodes", "limits", "writing")}
    return Trial(trial.policy, replace(world, **kept))


def _assumptions(found: Candidate, jobs: Jobs) -> list[tuple[str, tuple[World, ...]]]:
    plans = [("load", tuple(World(load=load) for load in LOADS))]
    if Part.BACKFILL in found.parts or Part.ORDER in found.parts:
        plans.append(("estimate", tuple(World(estimate=each) for each in ESTIMATES)))
    reclaims = any(each.disrupts and each.part is Part.QUOTA for each in found.changes)
    if reclaims or BY_COST & found.parts:
        plans.append(("checkpoint", tuple(World(checkpoint=each) for each in CHECKPOINTS)))
    if owners := {name for change in found.changes for name in change.owners}:
        quota = found.before.policy.quota
        leaves, paths = leaves_of(jobs, quota)[0], paths_of(jobs, quota)
        own = tuple(leaf for leaf, path in zip(leaves, paths, strict=True) if owners & set(path))
        plans.append(("returns", tuple(
            World(returns=each, owners=own, owners_by=quota.by) for each in RETURNS)))  # fmt: skip
    return plans


def _boundary(
    found: Candidate,
    plan: tuple[str, tuple[World, ...]],
    trials: dict[Trial, Effects | None],
) -> Boundary:
    name, worlds = plan
    points = []
    for world in worlds:
        before, after = trials[Trial(found.before.policy, world)], trials[_in(found.trial, world)]
        assert before is not None
        assert after is not None
        gain = gain_in(found.gain, before, after)
        if name == "returns" and harmed(before, after, teams=True):
            gain = 0.0  # what was lent is missed
        points.append((getattr(world, name), gain))
    own = gain_in(found.gain, found.today, found.found)
    if name != "estimate":
        points.append((1.0, own))
    points.sort()
    values, gains = tuple(p[0] for p in points), tuple(p[1] for p in points)
    least = KEEPS * own
    return Boundary(name, values, gains, _first(points, least), _last(points, least))


def gain_in(gain: Gain, before: Effects, after: Effects) -> float:
    """The gain a week in the candidate's own measure: GPU-hours, or hours of waiting."""
    names = {Gain.URGENT: "urgent_waited", Gain.BIG: "big_waited", Gain.TEAM: "starved_waited"}
    name = names.get(gain, "lost_capacity")
    return float((getattr(before, name) - getattr(after, name)).mean()) * 7


def _first(points: list[tuple[float, float]], least: float) -> float | None:
    """From which value on it pays, seen from below; None = from the lowest tried."""
    paying = [place for place, (_, gain) in enumerate(points) if gain > least]
    if not paying or paying[0] == 0:
        return None
    return _crossing(points[paying[0] - 1], points[paying[0]], least)


def _last(points: list[tuple[float, float]], least: float) -> float | None:
    """Up to which value it pays; None = up to the highest tried."""
    paying = [place for place, (_, gain) in enumerate(points) if gain > least]
    if not paying or paying[-1] == len(points) - 1:
        return None
    return _crossing(points[paying[-1]], points[paying[-1] + 1], least)


def _crossing(one: tuple[float, float], other: tuple[float, float], least: float) -> float:
    (x0, y0), (x1, y1) = one, other
    return x0 if y1 == y0 else x0 + (least - y0) * (x1 - x0) / (y1 - y0)
