"""Runs beside everything else: a thread that follows each, and processes that they share."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from scheduler_advisor.crew import Crew
from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.running.journal import note
from scheduler_advisor.running.run import Run, RunState
from scheduler_advisor.window import Window
from scheduler_advisor.withheld import WithheldError
from scheduler_advisor.workers import CancelledError

if TYPE_CHECKING:
    from collector.store import Store

log = logging.getLogger(__name__)

WORKERS = 2
MOST_AT_ONCE = 32  # each has a thread: a script that asks without end must hear of it
KEPT = 64  # finished runs: an afternoon of trying
ENDED_WITHIN_S = 3.0
Doing = Callable[[Run, Crew], dict[str, Any]]


class Runs:
    """The runs over one store; each is noted there when it begins and when it ends."""

    def __init__(self, store: Store, clock: Callable[[], datetime], workers: int = WORKERS) -> None:
        self.store = store
        self._clock = clock
        self._workers = workers
        self._crew: Crew | None = None
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._number = 0
        self.closing = False

    def begin(self, kind: str, cluster: str | None, window: Window, doing: Doing) -> Run:
        """Start ``doing`` in a thread of its own; returns at once. AdvisorError where very many
        work already."""
        if len(self.running()) >= MOST_AT_ONCE:
            raise AdvisorError(
                f"{MOST_AT_ONCE} runs work already: wait for one to end, or end one (/api/v1/runs)"
            )
        run = self._new(kind, cluster, window)
        threading.Thread(
            target=self._follow, args=(run, doing), name=f"run-{run.run_id}", daemon=True
        ).start()
        return run

    def here(self, kind: str, cluster: str | None, window: Window, doing: Doing) -> dict[str, Any]:
        """`begin` in the calling thread: others can follow and cancel it; errors are raised."""
        run = self._new(kind, cluster, window)
        return self._done(run, doing)

    def get(self, run_id: str) -> Run | None:
        """A run by its id; None where there is none (any more)."""
        with self._lock:
            return self._runs.get(run_id)

    def running(self, kind: str | None = None) -> list[Run]:
        """Those that work now, the oldest first."""
        with self._lock:
            found = list(self._runs.values())
        return [run for run in found if run.state is RunState.RUNNING and kind in (None, run.kind)]

    def cancel(self, run_id: str) -> bool:
        """Ask a run to stop; it does within a replay's time, and keeps nothing."""
        run = self.get(run_id)
        if run is None:
            return False
        run.stop.set()
        return True

    def close(self) -> None:
        """Stop every run and end the processes."""
        with self._lock:
            self.closing = True
            found = list(self._runs.values())
            crew, self._crew = self._crew, None
        for run in found:
            run.stop.set()
        if crew is not None:
            crew.close()
        for run in found:
            if not run.over.wait(ENDED_WITHIN_S):
                log.warning("a run of kind %s did not end in time; it is left", run.kind)

    def _new(self, kind: str, cluster: str | None, window: Window) -> Run:
        now = self._clock()
        with self._lock:
            if self.closing:
                raise CancelledError("the service is stopping")
            self._number += 1
            text = f"{self._number}{kind}{cluster}{window}{now.isoformat()}"
            name = hashlib.sha256(text.encode()).hexdigest()[:12]
            run = self._runs[name] = Run(name, kind, cluster, window, now)
            self._forget()
        self._note(run)
        return run

    def _forget(self) -> None:
        """The oldest that have ended go first; one that works is kept however many there are."""
        over = [name for name, run in self._runs.items() if run.over.is_set()]
        for name in over[: max(len(self._runs) - KEPT, 0)]:
            del self._runs[name]

    def _follow(self, run: Run, doing: Doing) -> None:
        try:
            self._done(run, doing)
        except AdvisorError as error:
            log.info("a run of kind %s ended: %s", run.kind, error)

    def _done(self, run: Run, doing: Doing) -> dict[str, Any]:
        try:
            run.answer(doing(run, self._working()))
            run.state = RunState.DONE
            assert run.result is not None
            return run.result
        except CancelledError:
            run.state = RunState.CANCELLED
            raise
        except AdvisorError as error:
            run.withheld = error if isinstance(error, WithheldError) else None
            run.error, run.state = str(error), RunState.FAILED
            raise
        except Exception as error:
            # A thread has nobody above it: the reader of the run must hear of it.
            run.error, run.state = f"{type(error).__name__}: {error}", RunState.FAILED
            raise
        finally:
            if run.state is not RunState.DONE:
                run.result = None
            self._note(run)
            run.answered.set()  # nothing more is to be waited for
            run.over.set()

    def _note(self, run: Run) -> None:
        with self.store.work() as work:
            note(work, run, self._clock())

    def _working(self) -> Crew:
        with self._lock:
            if self.closing:
                raise CancelledError("the service is stopping")
            if self._crew is None:
                self._crew = Crew(self._workers)
            return self._crew


_known: dict[str, Runs] = {}
_knowing = threading.Lock()


def runs_of(store: Store, clock: Callable[[], datetime]) -> Runs:
    """The runs of an open store: pages, API and schedule share them."""
    with _knowing:
        if store.path not in _known or _known[store.path].store is not store:
            _known[store.path] = Runs(store, clock)
        return _known[store.path]


def close_runs(store: Store) -> None:
    """End the runs over a store that is about to be closed."""
    with _knowing:
        found = _known.pop(store.path, None)
    if found is not None:
        found.close()
