"""What advice from facts brought after it was applied: amounts that can be worked out on paper.

Reports are made after 14 days, advice is applied two hours later, and judged after 22: the seven
whole days 15 to 21 are compared with the days before.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_advisor.advice.kinds import KINDS
from scheduler_advisor.advice.recommendation import State, StateChange
from scheduler_advisor.advice.states import change_state
from scheduler_advisor.followup.changes import Changed
from scheduler_advisor.followup.fact_days import fact_days
from scheduler_advisor.followup.follow import judge
from scheduler_advisor.followup.measure import MEASURES
from scheduler_advisor.followup.record import confidence, outcomes, save_outcomes
from scheduler_advisor.followup.scope import Scope
from scheduler_advisor.followup.verdict import Predicted, Verdict
from scheduler_advisor.goals import Goals
from scheduler_advisor.report.make import make_report
from scheduler_advisor.report.saved import newest_report, recommendations_of, save_report
from scheduler_advisor.window import Window

T0 = datetime(2026, 10, 5, tzinfo=UTC)
MADE = T0 + timedelta(days=14)
APPLIED = MADE + timedelta(hours=2)
END = T0 + timedelta(days=22)
DAY = 24
CHANGE = 14 * DAY + 1  # the hour at which the owner does something about it


def at_state(ts):
    return StateChange(ts=ts, state=State.APPLIED, actor="t", reason=None, until=None)


def applied(lab, kind):
    """Report after 14 days, its advice of the kind marked as applied; the recommendation."""
    lab.built()
    report = make_report(lab.store, Window(T0, MADE), Goals(), at=MADE, cluster="c")
    [rec] = [each for each in report.advice.recommendations if each.kind == kind]
    with lab.store.work() as work, work.transaction():
        save_report(work, report)
        change_state(work, rec.id, at_state(APPLIED))
    return rec


def the_outcome(lab, at=END):
    [found] = judge(lab.store, at, replays=False)
    return found


def notebook(lab, *, then=None):
    """Two idle GPUs until the owner lets them go; ``then``: his next session's activity."""
    lab.node()
    lab.run("1", end=22 * DAY, gpus=1, first=4, user="bob", account="blue")
    lab.run("7", end=CHANGE, gpus=2, activity=0.0, name="notebook")
    if then is not None:
        lab.run("8", start=CHANGE, gpus=2, activity=then, name="notebook")


def test_a_session_let_go_brought_what_it_held_idle(lab):
    notebook(lab)
    rec = applied(lab, "held_idle")
    assert rec.saving.gpu_hours == pytest.approx(2 * 24 * 7)
    found = the_outcome(lab)
    assert found.found.gpu_hours == pytest.approx(2 * 24 * 7)
    assert (found.found.days_before, found.found.days_after) == (7, 7)
    assert found.verdict is Verdict.KEPT


def test_the_next_idle_session_of_the_same_person_wins_nothing_and_is_on_record(lab):
    notebook(lab, then=0.0)
    rec = applied(lab, "held_idle")
    found = the_outcome(lab)
    assert found.found.gpu_hours == pytest.approx(0, abs=1e-6)
    assert found.verdict is Verdict.FAILED
    with lab.store.work() as work:
        save_outcomes(work, [found], END)
        [row] = outcomes(work)
        [trust] = confidence(work)
        [shown] = [each for each in recommendations_of(work, newest_report(work)["report_id"], END)
                   if each["id"] == rec.id]  # fmt: skip
    assert (row["kind"], row["verdict"]) == ("held_idle", "failed")
    assert (trust.kind, trust.judged, trust.held) == ("held_idle", 1, 0)
    assert shown["realised"]["verdict"] == "failed"
    later = make_report(
        lab.store, Window(T0 + timedelta(days=8), END), Goals(), at=END, cluster="c"
    )
    again = next(each for each in later.advice.recommendations if each.kind == "held_idle")
    assert again.confidence.ratio == pytest.approx(1 / 3)
    assert "0 of 1 earlier predictions of this kind held here" in again.saving.method


def test_a_busy_session_afterwards_is_no_idle_time(lab):
    notebook(lab, then=1.0)
    applied(lab, "held_idle")
    assert the_outcome(lab).found.gpu_hours == pytest.approx(2 * 24 * 7)


def test_silence_of_the_collector_afterwards_is_not_taken_for_a_saving(lab):
    lab.node()
    lab.run("7", end=CHANGE, gpus=2, activity=0.0, name="notebook")
    lab.run("8", start=CHANGE, end=22 * DAY, gpus=2, name="notebook", measured=False)
    applied(lab, "held_idle")
    found = the_outcome(lab)
    assert found.verdict is Verdict.TOO_EARLY
    assert found.found.days_after == 0


def test_a_week_that_is_not_over_is_too_early(lab):
    notebook(lab)
    applied(lab, "held_idle")
    assert the_outcome(lab, at=END - timedelta(days=1)).verdict is Verdict.TOO_EARLY


def test_a_team_that_moved_its_work_to_fewer_gpus_is_judged_by_what_it_holds_above_target(lab):
    lab.node()
    lab.node("n2", model="T4")
    lab.run("1", end=CHANGE, gpus=4, activity=0.2)
    lab.run("2", start=CHANGE, end=22 * DAY, gpus=2, activity=0.4)
    rec = applied(lab, "low_efficiency")
    # A day: 96 GPU-h held and 19.2 used need 38.4 at 50%, so 57.6 are above; afterwards 48 - 38.4.
    found = the_outcome(lab)
    assert found.found.gpu_hours == pytest.approx((57.6 - 9.6) * 7, rel=1e-3)
    assert found.found.load_shift == pytest.approx(0, abs=1e-3)  # the same work was done
    assert found.change.predicted.point == pytest.approx(rec.saving.gpu_hours)


def test_a_drained_node_that_came_back_brought_its_gpus(lab):
    lab.node()
    lab.node("n2")
    lab.run("1", end=22 * DAY, gpus=1)
    lab.state("n2", since=0, until=CHANGE)
    applied(lab, "drained_nodes")
    found = the_outcome(lab)
    assert found.found.gpu_hours == pytest.approx(8 * 24 * 7)
    assert found.verdict is Verdict.KEPT


def test_advice_about_one_person_does_not_end_the_comparison_of_another(lab):
    lab.node()
    lab.run("7", end=CHANGE, gpus=2, activity=0.0, name="notebook")
    lab.run("9", end=17 * DAY + 1, gpus=1, first=4, activity=0.0, user="bob", account="blue")
    lab.built()
    report = make_report(lab.store, Window(T0, MADE), Goals(), at=MADE, cluster="c")
    ids = {rec.draft.owner.user: rec.id for rec in report.advice.recommendations
           if rec.kind == "held_idle"}  # fmt: skip
    with lab.store.work() as work, work.transaction():
        save_report(work, report)
        for user, day in (("ann", 14), ("bob", 17)):
            when = T0 + timedelta(days=day, hours=2)
            change_state(work, ids[user], at_state(when))
    found = {each.change.subject_id: each for each in judge(lab.store, END, replays=False)}
    assert found[ids["ann"]].found.days_after == 7
    assert found[ids["ann"]].found.gpu_hours == pytest.approx(2 * 24 * 7)
    assert found[ids["bob"]].verdict is Verdict.TOO_EARLY


def fault(lab, kind, subject="", **scope):
    """GPU-hours of the first two days as the kind is judged."""
    lab.built()
    change = Changed("s", "c", kind, END, "", Predicted(1, 0, 2), scope=Scope(**scope), target=0.5,
                     subject=subject)  # fmt: skip
    with lab.store.work() as work:
        return fact_days(work, change, T0, T0 + timedelta(days=2)).blocked.tolist()


def load(lab, kind, **scope):
    """What makes the same days comparable."""
    change = Changed("s", "c", kind, END, "", Predicted(1, 0, 2), scope=Scope(**scope))
    with lab.store.work() as work:
        return fact_days(work, change, T0, T0 + timedelta(days=2)).asked.tolist()


ANN = {"people": frozenset({("red", "ann")})}


def test_attempts_after_the_first_are_what_a_loop_costs(lab):
    lab.days = 2
    lab.node()
    lab.run("1", end=3, gpus=2, state="FAILED")
    lab.run("1", start=4, end=10, gpus=2, state="FAILED", attempt=2, submit=3)
    lab.run("2", start=5, end=9, gpus=1, first=4, user="bob", account="blue", attempt=2)
    assert fault(lab, "requeue_loops", **ANN) == pytest.approx([12, 0])


def test_parts_that_started_apart_cost_what_the_early_ones_held(lab):
    lab.days = 2
    lab.node()
    lab.node("n2")
    lab.run("1", end=30, node=[("n1", 4, 2.0), ("n2", 4, 5.5)])
    assert fault(lab, "gang_off") == pytest.approx([4 * 3.5, 0])


def test_runs_that_lay_apart_are_judged_by_what_as_many_runs_held(lab):
    lab.days = 2
    lab.node()
    lab.run("1", start=1, end=3, gpus=4)
    lab.run("2", start=20, end=28, gpus=4, first=4)  # over midnight: it began on the first day
    lab.run("3", start=2, end=9, gpus=1, user="bob", account="blue")
    assert fault(lab, "uneven_runs", **ANN) == pytest.approx([4 * 2 + 4 * 4, 4 * 4])
    assert load(lab, "uneven_runs", **ANN) == [2, 0]


def test_night_hours_alone_count_for_a_pool_that_sleeps(lab):
    lab.days = 2
    lab.node()
    lab.run("1", start=3, end=4, gpus=8)
    found = fault(lab, "night_idle", nodes=frozenset({"n1"}), hours=frozenset({2, 3}))
    assert found == pytest.approx([8, 16])  # of two hours a day, one was used on the first


def test_writing_checkpoints_is_part_of_what_an_interval_costs(lab):
    lab.days = 2
    lab.node()
    run = lab.run("1", end=40, gpus=4)
    for hour in (2, 26, 27):
        lab.event("checkpoint_begin", hour, run_id=run, job_id="1")
        lab.event("checkpoint_end", hour + 0.25, run_id=run, job_id="1")
    assert fault(lab, "checkpoint_interval", **ANN) == pytest.approx([1, 2])


def test_a_replayed_change_of_checkpoints_is_judged_by_lost_work_and_writing(lab):
    lab.days = 2
    lab.node()
    # Two hours of four GPUs after the checkpoint are lost; it took a quarter of an hour.
    run = lab.run("1", end=8, gpus=4, activity=1.0, state="PREEMPTED")
    lab.event("checkpoint_begin", 5.75, run_id=run, job_id="1")
    lab.event("checkpoint_end", 6, run_id=run, job_id="1")
    assert fault(lab, "policy_change", "checkpoint_optimum") == pytest.approx([4 * 2 + 1, 0])
    mixed = Changed(
        "s", "c", "policy_change", END, "", subject="preempt_priority + checkpoint_half"
    )
    assert mixed.measure is None  # that frees other hours too


def test_a_day_that_the_ledger_does_not_hold_is_no_day_without_fault(lab):
    lab.days = 1
    lab.node()
    lab.run("1", end=24, gpus=2, activity=0.0)
    assert fault(lab, "held_idle", **ANN) == pytest.approx([48])


def test_every_kind_that_promises_hours_is_judged():
    without = {kind.RULE.kind for kind in KINDS} - set(MEASURES)
    assert without == {"data_quality", "unattributed", "checkpoint_unknown"}  # they promise none
