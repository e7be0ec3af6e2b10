"""Background work: it repeats, and its failure is seen and survived."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

from apscheduler.events import EVENT_JOB_MAX_INSTANCES

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


def test_a_task_that_takes_longer_than_its_interval_warns_of_nothing(caplog):
    turns_left_out = []
    release = threading.Event()
    schedule = Schedule(lambda: NOW)
    schedule.every(timedelta(milliseconds=20), "report", lambda: release.wait(5))
    schedule._scheduler.add_listener(turns_left_out.append, EVENT_JOB_MAX_INSTANCES)
    schedule.start()
    for _ in range(250):
        if turns_left_out:
            break
        time.sleep(0.02)
    release.set()
    schedule.stop()
    assert turns_left_out
    assert caplog.records == []
