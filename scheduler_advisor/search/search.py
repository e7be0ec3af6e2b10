"""One change at a time from today's policy, then pairs, then the whole; nodes more and fewer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.goals import Goals
from scheduler_advisor.past import Past
from scheduler_advisor.search.alter import World, caps_bind
from scheduler_advisor.search.bench import Bench, Trial, bench_of, run_trial
from scheduler_advisor.search.boundary import Boundary, boundaries
from scheduler_advisor.search.candidate import Candidate, Gain, candidate
from scheduler_advisor.search.catalogue import (
    CHANGES,
    Alter,
    Change,
    Part,
    applied,
    nodes_changes,
    replayable,
)
from scheduler_advisor.search.effects import Effects
from scheduler_advisor.search.front import FrontPoint, objectives, pareto
from scheduler_advisor.workers import Inline, Workers, never

FEW = 20_000  # jobs up to which a plan for all of them is tried: its cost grows with the queue
PAIRED = 5  # the best changes of different parts: ten pairs
BETTER = 1.1  # two changes at once are more work and risk: they must bring a tenth more

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class NodesPoint:
    """Today's policy with more or fewer nodes."""

    nodes: int
    gpus: int
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that was tried. ``best`` are the recommendations in order; ``not_tried`` names
    changes that this simulator does not have; ``worth_nodes``: nodes that would bring as much as
    the best change, None = more than was tried."""

    bench: Bench
    policy: Policy
    today: Effects
    tried: tuple[Candidate, ...]
    best: tuple[Candidate, ...]
    front: tuple[FrontPoint, ...]
    nodes: tuple[NodesPoint, ...]
    bounds: dict[str, tuple[Boundary, ...]]
    not_tried: tuple[str, ...]
    worth_nodes: float | None


def search(  # noqa: PLR0913 - what to try it on, and three ways to watch it
    past: Past,
    policy: Policy,
    goals: Goals,
    *,
    input_error: float = 0.0,
    thorough: bool = False,
    workers: Workers | None = None,
    progress: Progress = lambda what, done, total: None,
    cancelled: Callable[[], bool] = never,
) -> Found:
    """Try every change of the catalogue on ``past`` and keep what pays and harms nobody.

    ``thorough``: also those that need the simulator's general driver.
    """
    bench = bench_of(past, goals, input_error)
    base = Trial(policy)
    runs = _Runs(bench, base, workers or Inline(), progress, cancelled)
    singles, not_tried = usable(past, policy, goals, thorough=thorough)
    nodes = nodes_changes(len(past.cluster)) if len(past.cluster) > 1 else []
    tried = runs.all("changes", [(change,) for change in (*singles, *nodes)])
    alone = [each for each in tried if Part.NODES not in each.parts]
    tried += runs.all("pairs", _pairs(alone, goals))
    tried += runs.all("whole", _whole(tried, goals))
    best = chosen(tried, goals)
    points = [(each.name, objectives(each.found)) for each in tried]
    front = pareto(
        ["today", *(n for n, _ in points)], [objectives(runs.today), *(o for _, o in points)]
    )
    return Found(
        bench, policy, runs.today, tuple(tried), tuple(best), tuple(front), _nodes(tried, past),
        runs.bounds(best), not_tried, _worth(tried, best),
    )  # fmt: skip


class _Runs:
    """Replays that were run, so that none is run twice."""

    def __init__(
        self, bench: Bench, base: Trial, workers: Workers, progress: Progress,
        cancelled: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._bench, self._base, self._workers = bench, base, workers
        self._progress, self._cancelled = progress, cancelled
        self._known: dict[Trial, Effects] = {}

    @property
    def today(self) -> Effects:
        """What the policy in force does."""
        return self._known[self._base]

    def all(self, what: str, sets: Sequence[tuple[Change, ...]]) -> list[Candidate]:
        """A candidate for each set of changes."""
        made = {changes: self._trial(changes) for changes in sets}
        trials = {changes: trial for changes, trial in made.items() if trial is not None}
        wanted = dict.fromkeys([self._base, *trials.values()])
        left = [trial for trial in wanted if trial not in self._known]
        self._progress(what, 0, len(left))
        work = self._workers.each(self._bench, run_trial, left, self._cancelled)
        for done, (trial, found) in enumerate(work, 1):
            self._known[trial] = found
            self._progress(what, done, len(left))
        return [
            candidate(
                self._bench, changes, (self._base, trial), self.today,
                      self._known[trial])
            for changes, trial in trials.items()
        ]  # fmt: skip

    def bounds(self, best: Sequence[Candidate]) -> dict[str, tuple[Boundary, ...]]:
        """Where each of the best stops paying."""
        return boundaries(
            self._bench, best, self._workers, lambda done: self._progress("boundary", done, 0),
            self._cancelled,
        )  # fmt: skip

    def _trial(self, changes: tuple[Change, ...]) -> Trial | None:
        """None where the changes do not go together."""
        policy, world = self._base.policy, World()
        for change in changes:
            after = applied(policy, change)
            if after is None:
                return None
            policy = after
            world = replace(
                world, alter=change.alter or world.alter, nodes=world.nodes + change.nodes
            )
        return Trial(policy, world) if replayable(policy) else None


def usable(
    past: Past, policy: Policy, goals: Goals, *, thorough: bool = False
) -> tuple[list[Change], tuple[str, ...]]:
    """Changes that would change something here, and the names of those that cannot be tried."""
    found: list[Change] = []
    gone: list[Change] = []
    missing: list[str] = []
    for change in CHANGES:
        after = applied(policy, change)
        if after is None or (change.thorough and not thorough):
            missing.append(change.name)
        elif _sensible(change, after, policy, past, goals):
            (found if replayable(after) else gone).append(change)
    return found, (*missing, *(change.name for change in gone))


def _sensible(change: Change, after: Policy, policy: Policy, past: Past, goals: Goals) -> bool:
    """Whether it could change anything here, and stops nothing that must not be stopped."""
    jobs, cluster = past.jobs, past.cluster
    if change.alter is not Alter.NOTHING:
        return caps_bind(jobs, cluster, change.alter)
    if after == policy or (change.part is Part.PLACEMENT and len(cluster) == 1):
        return False
    varied = int(np.ptp(jobs.priority)) > 0
    # Only work with evidence that it resumes may be stopped or moved.
    resumes = bool(jobs.preemptible.any()) and not goals.never.preempt
    needs = {
        "backfill_conservative": len(jobs) <= FEW,
        "order_priority": varied,
        "order_multifactor": len(jobs.qos.names) > 1,
        "order_fair_share": len(jobs.team.names) > 1,
        "topology": len(set(cluster.leaf)) > 1 and bool((jobs.tasks > 1).any()),
        "preempt_priority": resumes and varied,
        "defrag_nightly": resumes and not goals.never.move,
        "share_mig": bool((jobs.gpu_milli > 0).any()) and not goals.never.share,
        "elastic": bool((jobs.max_tasks > jobs.min_tasks).any()),
    }
    return needs.get(change.name, True)


def _pairs(alone: Sequence[Candidate], goals: Goals) -> list[tuple[Change, ...]]:
    best = _best_by_part(alone, goals)[:PAIRED]
    return [(*a.changes, *b.changes) for a, b in combinations(best, 2)]


def _whole(tried: Sequence[Candidate], goals: Goals) -> list[tuple[Change, ...]]:
    """The best pair with the best change of every part that it leaves alone, one after another."""
    pairs = [each for each in tried if len(each.changes) == 2]
    if not pairs:
        return []
    top = min(pairs, key=lambda each: _key(each, goals))
    alone = _best_by_part([e for e in tried if len(e.changes) == 1], goals)
    changes, found = list(top.changes), []
    for other in alone:
        if not other.parts & {change.part for change in changes}:
            changes += other.changes
            found.append(tuple(changes))
    return found[:2]


def _best_by_part(alone: Iterable[Candidate], goals: Goals) -> list[Candidate]:
    """The best change of each part that brings anything, best first."""
    best: dict[Part, Candidate] = {}
    helping = [each for each in alone if Part.NODES not in each.parts and _helps(each)]
    for each in sorted(helping, key=lambda each: _key(each, goals)):
        best.setdefault(each.changes[0].part, each)
    return list(best.values())


def _helps(each: Candidate) -> bool:
    return each.hours.point > 0 or each.urgent_hours.point > 0 or each.big_hours.point > 0


def chosen(tried: Sequence[Candidate], goals: Goals) -> list[Candidate]:
    """What is advised: the best for each gain, each touching parts that the others leave alone.

    A second change for the same gain would win back the same time twice: if both together brought
    more, the pair would be the best. More nodes cost money and are only ever an alternative; a set
    of changes must bring a tenth more than fewer of them.
    """
    fine = [e for e in tried if e.advised and Part.NODES not in e.parts]
    fine = [e for e in fine if not _outdone(e, fine, goals)]
    picked: list[Candidate] = []
    for each in sorted(fine, key=lambda each: _key(each, goals)):
        if all(each.gain is not other.gain and not each.parts & other.parts for other in picked):
            picked.append(each)
    return picked


def _outdone(each: Candidate, others: Sequence[Candidate], goals: Goals) -> bool:
    """Whether fewer of the same changes bring (nearly) as much."""
    own = set(each.changes)
    return any(
        set(other.changes) < own and _worth_of(other, goals) * BETTER >= _worth_of(each, goals)
        for other in others
    )


def _worth_of(each: Candidate, goals: Goals) -> float:
    """The gain in the measure that the goals put first."""
    if goals.first == "response_time":
        return each.urgent_hours.point + each.big_hours.point
    if each.gain in (Gain.CAPACITY, Gain.NONE):
        return each.hours.point
    return each.urgent_hours.point if each.gain is Gain.URGENT else each.big_hours.point


def _key(each: Candidate, goals: Goals) -> tuple[float, ...]:
    """Smaller is better: what the goals put first, then capacity, then waits, then risk."""
    found, waits = each.found, -(each.urgent_hours.point + each.big_hours.point)
    advised = 0.0 if each.advised else 1.0
    hours = -each.hours.point
    money = hours - float(each.wait_cost_daily.sum())
    capacity = 0.0 if each.gain is Gain.CAPACITY else 1.0
    first = {
        "money": (capacity, money if capacity == 0 else waits, waits),
        "response_time": (waits, hours),
        "throughput": (-found.goodput, hours),
        "fairness": (-found.fairness, hours),
    }[goals.first]
    return (advised, *first, float(each.risk), float(len(each.changes)))


def _nodes(tried: Sequence[Candidate], past: Past) -> tuple[NodesPoint, ...]:
    per_node = int(past.cluster.gpus[-1]) if len(past.cluster) else 0
    points = [
        NodesPoint(each.changes[0].nodes, each.changes[0].nodes * per_node, each)
        for each in tried
        if each.parts == {Part.NODES}
    ]
    return tuple(sorted(points, key=lambda point: point.nodes))


def _worth(tried: Sequence[Candidate], best: Sequence[Candidate]) -> float | None:
    """How many more nodes cut the mean wait as much as the best change does."""
    if not best:
        return 0.0
    goal, today = best[0].found.mean_wait_s, best[0].today.mean_wait_s
    more = sorted(
        (each.changes[0].nodes, each.found.mean_wait_s)
        for each in tried
        if each.parts == {Part.NODES} and each.changes[0].nodes > 0
    )
    before = (0, today)
    for nodes, wait in more:
        if wait <= goal:
            share = (before[1] - goal) / max(before[1] - wait, 1e-9)
            return before[0] + (nodes - before[0]) * min(max(share, 0.0), 1.0)
        before = (nodes, wait)
    return None
