"""Background work: it repeats, and its failure is seen and survived."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from unstrand.service.schedule import Schedule

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)


def test_a_failing_task_is_reported_and_runs_again():
    ran = threading.Semaphore(0)
    outcomes = iter([ValueError("no"), None])

    def task():
        outcome = next(outcomes, None)
        ran.release()
        if outcome:
            raise outcome

    schedule = Schedule(lambda: NOW)
    schedule.every(timedelta(milliseconds=20), "refresh", task)
    schedule.start()
    assert ran.acquire(timeout=5)
    assert ran.acquire(timeout=5)
    schedule.stop()
    figures = schedule.figures["refresh"]
    assert figures.failures == 1
    assert figures.runs >= 2
    assert figures.last_ok_at == NOW
    assert figures.last_error is None
