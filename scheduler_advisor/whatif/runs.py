"""What-ifs that run beside everything else: in processes of their own, with progress and cancel."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from scheduler_advisor.calibration.calibrate import Calibration
from scheduler_advisor.crew import Crew
from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.goals import Goals
from scheduler_advisor.replayed import Replayed
from scheduler_advisor.search.bench import Bench, Trial, bench_of, run_trial
from scheduler_advisor.search.effects import Effects
from scheduler_advisor.steps import Watch, calibrate, load
from scheduler_advisor.whatif.compare import side_by_side, trials
from scheduler_advisor.whatif.wish import Wish
from scheduler_advisor.window import Window
from scheduler_advisor.workers import CancelledError

if TYPE_CHECKING:
    from collector.store import Store

WORKERS = 2
KEPT = 64  # finished runs and known pasts: an afternoon of trying
Key = tuple[str, Window, str]


@dataclass(slots=True)
class Run:
    """One what-if. ``state``: running | done | failed | cancelled."""

    run_id: str
    wish: Wish
    window: Window
    cluster: str
    state: str = "running"
    stage: str = "read"
    done: int = 0
    total: int = 0
    result: dict[str, Any] | None = None
    error: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def as_json(self) -> dict[str, Any]:
        """What a page or a client needs to follow it."""
        return {"run_id": self.run_id, "state": self.state, "stage": self.stage,
                "done": self.done, "total": self.total, "result": self.result,
                "error": self.error}  # fmt: skip


class Runs:
    """Every run has a thread that waits and a share of the processes that work."""

    def __init__(self, workers: int = WORKERS) -> None:
        self._workers = workers
        self._crew: Crew | None = None
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._pasts: OrderedDict[Key, tuple[Calibration, Bench]] = OrderedDict()
        self._known: OrderedDict[tuple[Key, Trial], Effects] = OrderedDict()
        self._number = 0

    def start(self, store: Store, window: Window, cluster: str, wish: Wish) -> Run:
        """Begin; returns at once. A wish that makes no sense is refused here (WishError)."""
        _ = wish.world
        with self._lock:
            self._number += 1
            name = hashlib.sha256(f"{self._number}{wish}{window}".encode()).hexdigest()[:12]
            run = self._runs[name] = Run(name, wish, window, cluster)
            while len(self._runs) > KEPT:
                self._runs.popitem(last=False)
        key = (store.path, window, cluster)
        thread = threading.Thread(target=self._follow, args=(run, store, key), daemon=True)
        thread.start()
        return run

    def get(self, run_id: str) -> Run | None:
        """A run by its id; None where there is none (any more)."""
        with self._lock:
            return self._runs.get(run_id)

    def cancel(self, run_id: str) -> bool:
        """Ask a run to stop; it does within a replay's time, and keeps nothing."""
        run = self.get(run_id)
        if run is None:
            return False
        run.stop.set()
        return True

    def close(self) -> None:
        """Stop every run and the pool."""
        with self._lock:
            for run in self._runs.values():
                run.stop.set()
            crew, self._crew = self._crew, None
        if crew is not None:
            crew.close()

    def _follow(self, run: Run, store: Store, key: Key) -> None:
        try:
            run.result = self._result(run, store, key)
            run.state = "done"
        except CancelledError:
            run.state = "cancelled"
        except AdvisorError as error:
            run.error, run.state = str(error), "failed"
        except Exception as error:
            # A thread has nobody above it: the reader of the run must hear of it.
            run.error, run.state = f"{type(error).__name__}: {error}", "failed"
            raise

    def _result(self, run: Run, store: Store, key: Key) -> dict[str, Any]:
        found, bench = self._past(run, store, key)
        base, candidate = Trial(found.policy), Trial(run.wish.policy(found.policy), run.wish.world)
        wanted = trials(base, candidate)
        run.stage, run.done, run.total = "replay", 0, len(wanted)
        known = {t: self._known[key, t] for t in wanted if (key, t) in self._known}
        run.done = len(known)
        left = [trial for trial in wanted if trial not in known]
        for trial, effects in self._working().each(bench, run_trial, left, run.stop.is_set):
            known[trial] = effects
            run.done += 1
            self._remember(key, trial, effects)
        return side_by_side(bench, base, candidate, known, found.grade)

    def _past(self, run: Run, store: Store, key: Key) -> tuple[Calibration, Bench]:
        """The past with its policy in force, worked out once for each window."""
        with self._lock:
            if key in self._pasts:
                return self._pasts[key]
        loaded = load(store, key[1], key[2])
        if isinstance(loaded, Replayed):
            raise AdvisorError(f"{loaded.withheld}: {dict(loaded.params)}")
        run.stage = "calibrate"

        def tell(_: str, done: int, total: int) -> None:
            run.done, run.total = done, total

        watch = Watch(progress=tell, cancelled=run.stop.is_set, workers=self._working())
        found = calibrate(loaded, watch)
        error = found.found.blocked_error if found.found else 1.0
        bench = bench_of(found.past, Goals(), error)
        with self._lock:
            self._pasts[key] = found, bench
            while len(self._pasts) > 4:
                self._pasts.popitem(last=False)
        return found, bench

    def _remember(self, key: Key, trial: Trial, effects: Effects) -> None:
        with self._lock:
            self._known[key, trial] = effects
            while len(self._known) > KEPT:
                self._known.popitem(last=False)

    def _working(self) -> Crew:
        with self._lock:
            if self._crew is None:
                self._crew = Crew(self._workers)
            return self._crew


@cache
def runs() -> Runs:
    """The runs of this process: pages and API share them."""
    return Runs()
