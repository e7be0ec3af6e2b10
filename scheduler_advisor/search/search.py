"""One change at a time from today's policy, then pairs, then the whole; nodes more and fewer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from scheduler_advisor.engine.errors import EngineError
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.goals import Goals
from scheduler_advisor.past import Past
from scheduler_advisor.search.again import in_other_months
from scheduler_advisor.search.alter import World
from scheduler_advisor.search.bench import Bench, Refused, Trial, attempt, bench_of
from scheduler_advisor.search.boundary import Boundary, boundaries
from scheduler_advisor.search.candidate import Candidate, candidate
from scheduler_advisor.search.catalogue import Change, Part, applied, nodes_changes, replayable
from scheduler_advisor.search.choose import chosen, pairs, whole
from scheduler_advisor.search.effects import Effects
from scheduler_advisor.search.front import FrontPoint, objectives, pareto
from scheduler_advisor.search.nodes import NodesPoint, Worth, further, points, worth
from scheduler_advisor.search.usable import Usable, usable
from scheduler_advisor.search.writing import with_stops
from scheduler_advisor.workers import Inline, Workers, never

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that was tried. ``best`` are the recommendations in order; ``not_tried``: changes
    of the catalogue that were left out, by why; ``worth``: the best change in hardware."""

    bench: Bench
    policy: Policy
    today: Effects
    tried: tuple[Candidate, ...]
    best: tuple[Candidate, ...]
    front: tuple[FrontPoint, ...]
    nodes: tuple[NodesPoint, ...]
    bounds: dict[str, tuple[Boundary, ...]]
    left_out: Usable
    worth: Worth

    @property
    def not_tried(self) -> tuple[str, ...]:
        """Names of changes that were left out."""
        return self.left_out.not_tried


def search(  # noqa: PLR0913 - what to try it on, and three ways to watch it
    past: Past,
    policy: Policy,
    goals: Goals,
    *,
    input_error: float = 0.0,
    aims: Collection[str] = (),
    thorough: bool = False,
    workers: Workers | None = None,
    progress: Progress = lambda what, done, total: None,
    cancelled: Callable[[], bool] = never,
) -> Found:
    """Try the changes of the catalogue on ``past`` and keep what pays and harms nobody.

    ``aims``: causes that the diagnosis found; what only answers other ones is not tried unless
    ``thorough``.
    """
    bench = bench_of(past, goals, input_error)
    runs = _Runs(bench, Trial(policy), workers or Inline(), progress, cancelled)
    left_out = usable(past, policy, goals, aims, thorough=thorough)
    nodes = nodes_changes(len(past.cluster)) if len(past.cluster) > 1 else []
    tried = runs.all("changes", [*left_out.sets, *((change,) for change in nodes)])
    tried += further(tried, len(past.cluster), runs.one)
    alone = [e for e in tried if Part.NODES not in e.parts and len(e.changes) == 1]
    both = [*pairs(alone, goals), *with_stops(past, alone, goals)]
    tried += runs.all("pairs", _untried(both, tried))
    tried += runs.all("whole", _untried(whole(tried, goals), tried))
    best = runs.in_other_months(chosen(tried, goals))
    marks = [("today", objectives(runs.today)), *((e.name, objectives(e.found)) for e in tried)]
    front = pareto([name for name, _ in marks], [values for _, values in marks])
    left_out = replace(left_out, unknown=(*left_out.unknown, *runs.refused))
    per_node = int(past.cluster.gpus[-1]) if len(past.cluster) else 0
    return Found(
        bench, policy, runs.today, tuple(tried), tuple(best), tuple(front),
        points(tried, per_node), runs.bounds(best), left_out, worth(tried, best, per_node),
    )  # fmt: skip


def _untried(
    sets: Sequence[tuple[Change, ...]], tried: Sequence[Candidate]
) -> list[tuple[Change, ...]]:
    known = {frozenset(change.name for change in each.changes) for each in tried}
    found = {frozenset(change.name for change in each): each for each in sets}
    return [each for names, each in found.items() if names not in known]


class _Runs:
    """Replays that were run, so that none is run twice."""

    def __init__(
        self, bench: Bench, base: Trial, workers: Workers, progress: Progress,
        cancelled: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._bench, self._base, self._workers = bench, base, workers
        self._progress, self._cancelled = progress, cancelled
        self._known: dict[Trial, Effects | Refused] = {}
        self._refused: dict[str, None] = {}

    @property
    def today(self) -> Effects:
        """What the policy in force does."""
        today = self._known[self._base]
        assert isinstance(today, Effects)  # `all` raises otherwise
        return today

    @property
    def refused(self) -> tuple[str, ...]:
        """Names of changes that the simulator does not take with these nodes and jobs."""
        return tuple(self._refused)

    def all(self, what: str, sets: Sequence[tuple[Change, ...]]) -> list[Candidate]:
        """A candidate for each set of changes."""
        made = {changes: self._trial(changes) for changes in sets}
        trials = {changes: trial for changes, trial in made.items() if trial is not None}
        wanted = dict.fromkeys([self._base, *trials.values()])
        left = [trial for trial in wanted if trial not in self._known]
        self._progress(what, 0, len(left))
        work = self._workers.each(self._bench, attempt, left, self._cancelled)
        for done, (trial, outcome) in enumerate(work, 1):
            self._known[trial] = outcome
            self._progress(what, done, len(left))
        if isinstance(today := self._known[self._base], Refused):
            raise EngineError(today.reason)
        found: list[Candidate] = []
        for changes, trial in trials.items():
            effects = self._known[trial]
            if isinstance(effects, Refused):
                self._refused |= dict.fromkeys(e.name for e in changes if e.part is not Part.NODES)
                continue
            both = (self._base, trial)
            found.append(candidate(self._bench, changes, both, self.today, effects))
        return found

    def one(self, change: Change) -> Candidate | None:
        """A candidate for one change; None where it does not go."""
        return next(iter(self.all("nodes", [(change,)])), None)

    def in_other_months(self, best: Sequence[Candidate]) -> list[Candidate]:
        """The best with the intervals of later windows."""
        return in_other_months(
            self._bench, best, self._workers,
            lambda done, total: self._progress("other_months", done, total), self._cancelled,
        )  # fmt: skip

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
                world, alter=change.alter or world.alter, nodes=world.nodes + change.nodes,
                limits=world.limits if change.limits is None else change.limits,
                writing=change.writing or world.writing,
            )  # fmt: skip
        shares = bool((self._bench.past.jobs.gpu_milli > 0).any())
        return Trial(policy, world) if replayable(policy, shares=shares) else None
