from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler_advisor.advice.recommendation import State, StateChange
from scheduler_advisor.advice.states import change_state
from scheduler_advisor.errors import AdviceStateError
from scheduler_advisor.report.saved import (
    newest_report,
    open_savings,
    recommendations_of,
    rows_behind,
    save_report,
)


@pytest.fixture
def idle(lab, store):
    """A saved report with one idle session of 336 GPU-hours and 672.00 a week."""
    lab.node()
    lab.run("7", start=0, gpus=2, activity=0.0)
    report = lab.report()
    with store.work() as work, work.transaction():
        save_report(work, report)
    return report.advice.recommendations[0]


def change(state, at, **more):
    values = {"actor": "ann", "reason": None, "until": None} | more
    return StateChange(ts=at, state=state, **values)


def move(store, rec, made):
    with store.work() as work:
        change_state(work, rec.id, made)


def test_the_same_finding_keeps_its_id_and_state_from_week_to_week(lab, store, idle):
    move(store, idle, change(State.ACCEPTED, lab.until))
    again = lab.advice(at_time=lab.until + timedelta(days=7)).recommendations[0]
    assert again.id == idle.id
    assert again.state is State.ACCEPTED
    assert [entry.actor for entry in again.history] == ["ann"]


def test_a_dismissed_saving_is_counted_nowhere(lab, store, idle):
    assert lab.advice().joint.gpu_hours == pytest.approx(336)
    move(store, idle, change(State.DISMISSED, lab.until, reason="exam week"))
    assert lab.advice().joint.gpu_hours == 0
    with store.work() as work:
        assert open_savings(work, lab.until) == []


def test_a_snooze_ends_by_itself(lab, store, idle):
    end = lab.until + timedelta(days=10)
    move(store, idle, change(State.SNOOZED, lab.until, until=end))
    before = lab.advice(at_time=end - timedelta(seconds=1)).recommendations[0]
    after = lab.advice(at_time=end).recommendations[0]
    assert (before.state, after.state) == (State.SNOOZED, State.NEW)


@pytest.mark.parametrize(
    ("state", "more", "complaint"),
    [
        (State.DISMISSED, {}, "needs a reason"),
        (State.DISMISSED, {"reason": "  "}, "needs a reason"),
        (State.SNOOZED, {}, "needs an end"),
    ],
)
def test_a_change_that_says_too_little_is_refused(lab, store, idle, state, more, complaint):
    with pytest.raises(AdviceStateError, match=complaint):
        move(store, idle, change(state, lab.until, **more))
    assert store.value("SELECT count(*) FROM recommendation_state") == 0


def test_an_id_that_no_report_named_is_refused(store, lab):
    with store.work() as work, pytest.raises(AdviceStateError, match="advise list"):
        change_state(work, "held-idle-00000000", change(State.ACCEPTED, lab.until))


def test_nothing_of_the_history_is_lost(lab, store, idle):
    move(store, idle, change(State.ACCEPTED, lab.until))
    move(store, idle, change(State.NEW, lab.until + timedelta(hours=1)))
    with store.work() as work:
        row = newest_report(work)
        [body] = recommendations_of(work, row["report_id"], lab.until, "en")
    assert [entry["state"] for entry in body["history"]] == ["accepted", "new"]


def test_the_rows_of_an_amount_add_up_to_it(lab, store, idle):
    with store.work() as work:
        saving = rows_behind(work, idle.id)
        current = rows_behind(work, idle.id, "current")
    assert sum(row["gpu_hours"] for row in saving) == pytest.approx(336)
    assert sum(row["cost"] for row in saving) == idle.saving.cost
    assert sum(row["cost"] for row in current) == idle.current_cost
    assert {row["run_id"] for row in saving} == {"7:1"}


def test_saving_a_report_twice_keeps_one(lab, store, idle):
    report = lab.report()
    with store.work() as work, work.transaction():
        save_report(work, report)
    assert store.value("SELECT count(*) FROM advice_report") == 1
