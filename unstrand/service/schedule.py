"""Work that repeats in the background, with what it did last time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

log = logging.getLogger(__name__)


@dataclass(slots=True)
class TaskFigures:
    """How a repeated task fares; ``last_error`` is None after a good run."""

    runs: int = 0
    failures: int = 0
    last_ok_at: datetime | None = None
    last_duration_s: float | None = None
    last_error: str | None = None


def _is_no_turn_left_out(record: logging.LogRecord) -> bool:
    """A task that takes longer than its interval leaves turns out: meant so, nothing to warn of."""
    return "maximum number of running instances" not in record.getMessage()


class Schedule:
    """Runs each task every so often, never twice at once; a failing task does not stop others."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        # It writes a line per run of every task; what a task does is in its figures.
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        logging.getLogger("apscheduler.scheduler").addFilter(_is_no_turn_left_out)
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(2)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        self._changed = threading.Condition()
        self._running = 0
        self._stopped = threading.Event()
        self.figures: dict[str, TaskFigures] = {}

    def every(self, interval: timedelta, name: str, task: Callable[[], object]) -> None:
        """Run ``task`` now and then every ``interval``."""
        self.figures[name] = TaskFigures()
        self._scheduler.add_job(
            lambda: self._run(name, task),
            "interval",
            seconds=interval.total_seconds(),
            next_run_time=datetime.now(UTC),  # noqa: TID251 - the scheduler compares with its own clock
            id=name,
            name=name,
        )

    def start(self) -> None:
        """Begin to run tasks."""
        self._scheduler.start()

    def stop(self, timeout_s: float = 5.0) -> bool:
        """Start no more tasks; whether those that run ended within ``timeout_s``.

        One that did not fails at its next question to the closed store; its transaction is undone.
        """
        self._stopped.set()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        with self._changed:
            return self._changed.wait_for(lambda: self._running == 0, timeout_s)

    def _run(self, name: str, task: Callable[[], object]) -> None:
        if self._stopped.is_set():
            return
        figures = self.figures[name]
        self._count(1)
        started = time.monotonic()
        try:
            task()
        except Exception as error:
            figures.failures += 1
            figures.last_error = f"{type(error).__name__}: {error}"
            if self._stopped.is_set():
                log.warning("the task %s was cut off by the stop: %s", name, figures.last_error)
            else:
                log.exception("the task %s failed; it runs again at its next turn", name)
        else:
            figures.last_ok_at = self._clock()
            figures.last_error = None
        finally:
            figures.runs += 1
            figures.last_duration_s = time.monotonic() - started
            self._count(-1)

    def _count(self, step: int) -> None:
        with self._changed:
            self._running += step
            self._changed.notify_all()
