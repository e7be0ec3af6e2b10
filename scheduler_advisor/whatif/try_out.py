"""A what-if as long work: the window's past worked out once, then today and the candidate."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from scheduler_advisor.calibration.calibrate import Calibration
from scheduler_advisor.compiled import load_simulator, wait_for_compiler
from scheduler_advisor.crew import Crew
from scheduler_advisor.goals import Goals
from scheduler_advisor.replayed import Replayed
from scheduler_advisor.running.run import Run
from scheduler_advisor.running.runs import Runs
from scheduler_advisor.search.bench import Bench, Trial, bench_of, run_trial
from scheduler_advisor.search.effects import Effects
from scheduler_advisor.steps import Watch, calibrate, load
from scheduler_advisor.whatif.compare import side_by_side, trials
from scheduler_advisor.whatif.wish import Wish
from scheduler_advisor.window import Window
from scheduler_advisor.withheld import WithheldError

KNOWN_PASTS, KNOWN_TRIALS = 4, 64
Key = tuple[str, Window, str, str]
# One row = what the past of a cluster rests on: facts that came since make it another past.
_FACTS = """
SELECT (SELECT count(*)::VARCHAR || '/' || count(start_at) || '/' || count(end_at) || '/'
    || coalesce(sum(epoch(coalesce(end_at, start_at, submit_at)))::HUGEINT, 0)
    FROM job_run WHERE cluster = $1)
  || '|' || (SELECT count(*) || '/' || coalesce(max(valid_from)::VARCHAR, '') FROM node
    WHERE cluster = $1)
  || '|' || (SELECT count(*) || '/' || count(valid_to) FROM scheduler_setting WHERE cluster = $1)
"""


class _Known:
    """Pasts and replays of this process that need not be worked out again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pasts: OrderedDict[Key, tuple[Calibration, Bench]] = OrderedDict()
        self._trials: OrderedDict[tuple[Key, Trial], Effects] = OrderedDict()

    def past(self, key: Key) -> tuple[Calibration, Bench] | None:
        with self._lock:
            return self._pasts.get(key)

    def keep_past(self, key: Key, found: Calibration, bench: Bench) -> None:
        with self._lock:
            self._pasts[key] = found, bench
            while len(self._pasts) > KNOWN_PASTS:
                self._pasts.popitem(last=False)

    def trial(self, key: Key, trial: Trial) -> Effects | None:
        with self._lock:
            return self._trials.get((key, trial))

    def keep_trial(self, key: Key, trial: Trial, effects: Effects) -> None:
        with self._lock:
            self._trials[key, trial] = effects
            while len(self._trials) > KNOWN_TRIALS:
                self._trials.popitem(last=False)


_known = _Known()


def start_whatif(runs: Runs, window: Window, cluster: str, wish: Wish) -> Run:
    """Begin; returns at once. A wish that makes no sense is refused here (WishError)."""
    _ = wish.world
    return runs.begin("whatif", cluster, window, lambda run, crew: _result(run, crew, runs, wish))


def _result(run: Run, crew: Crew, runs: Runs, wish: Wish) -> dict[str, Any]:
    assert run.cluster is not None
    facts = str(runs.store.value(_FACTS, [run.cluster]))
    key = (runs.store.path, run.window, run.cluster, facts)
    found, bench = _known.past(key) or _worked_out(run, crew, runs, key)
    base, candidate = Trial(found.policy), Trial(wish.policy(found.policy), wish.world)
    wanted = trials(base, candidate, bench.past)
    known = {t: effects for t in wanted if (effects := _known.trial(key, t)) is not None}
    left = [trial for trial in wanted if trial not in known]
    run.tell("replay", len(known), len(wanted))
    for trial, effects in crew.each(bench, run_trial, left, run.stop.is_set):
        known[trial] = effects
        _known.keep_trial(key, trial, effects)
        run.tell("replay", len(known), len(wanted))
        if run.result is None and base in known and candidate in known:
            run.answer(side_by_side(bench, base, candidate, known, found.grade))
    return side_by_side(bench, base, candidate, known, found.grade)


def _worked_out(run: Run, crew: Crew, runs: Runs, key: Key) -> tuple[Calibration, Bench]:
    """The past with its policy in force."""
    wait_for_compiler(run)
    crew.ready(load_simulator)  # while this process reads
    run.tell("read")
    loaded = load(runs.store, run.window, key[2])
    if isinstance(loaded, Replayed):
        raise WithheldError(loaded.withheld or "no_history", dict(loaded.params))
    run.tell("calibrate")
    found = calibrate(loaded, Watch(progress=run.tell, cancelled=run.stop.is_set, workers=crew))
    bench = bench_of(found.past, Goals(), found.input_error)
    _known.keep_past(key, found, bench)
    return found, bench
