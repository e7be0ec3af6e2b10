"""Advice that promised shorter waits is judged by the waits of its group, on paper.

Days 0 to 6 of one state of things, the change two hours into day 7, days 8 to 14 of another. On
odd days and the last everybody works twice as long, and the group waits an hour more: that is the
load's doing.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from collector.model import Allocation, FactWindow, JobRun, Node
from scheduler_advisor.followup.changes import changes
from scheduler_advisor.followup.follow import judge
from scheduler_advisor.followup.record import outcomes, save_outcomes
from scheduler_advisor.followup.verdict import Predicted, Verdict
from scheduler_advisor.goals import Goals

T0 = datetime(2026, 10, 5, tzinfo=UTC)
SAME = {"cluster": "c", "source": "test"}
AT, DAYS = 7, 15
CHANGED, END = T0 + timedelta(days=AT, hours=2), T0 + timedelta(days=DAYS)
# Team, GPUs, priority, queue of the jobs of a day; those that wait of each group.
JOBS = [("a", 1, 0, "q")] * 3 + [("b", 1, 0, "q")] * 3 + [("c", 1, 0, "q")] * 3
JOBS += [("a", 1, 9, "fast"), ("b", 8, 0, "q")]
GROUPS = {
    "urgent": lambda job: job[2] == 9,
    "big": lambda job: job[1] == 8,
    "team": lambda job: job[0] == "c",
}


def a_site(store, waits, *, before=6, after=2):
    """The jobs of 15 days; those of which ``waits`` says so wait so many hours, or one more."""
    facts = [Node(node=f"n{n}", gpus=8, cpus=64, gpu_model="A100", valid_from=T0, **SAME)
             for n in range(3)]  # fmt: skip
    facts.append(FactWindow(kind="scheduler", since=T0, until=END, **SAME))
    for day in range(DAYS):
        heavy = int(day % 2 or day == 14)
        for number, (account, gpus, priority, queue) in enumerate(JOBS):
            name = f"{day}-{number}"
            slow = waits((account, gpus, priority, queue))
            submit = T0 + timedelta(days=day, hours=1)
            start = submit + timedelta(hours=(before if day < AT else after) + heavy if slow else 0)
            end = start + timedelta(hours=2 + 2 * heavy)
            facts.append(JobRun(
                run_id=f"{name}:1", job_id=name, attempt=1, submit_at=submit, eligible_at=submit,
                start_at=start, end_at=end, gpus=gpus, nodes=1, cpus=gpus, state="COMPLETED",
                account=account, user_name=account, priority=priority, partition=queue, **SAME,
            ))  # fmt: skip
            node = "n2" if gpus == 8 else f"n{number % 2}"
            facts.append(Allocation(run_id=f"{name}:1", node=node, gpus=gpus, cpus=gpus,
                                    start_at=start, end_at=end, **SAME))  # fmt: skip
    with store.work() as work, work.transaction():
        work.append_facts(facts)


def advised(store, gain, measured, subject="order_priority"):
    """A report with this one piece of advice, applied."""
    body = {"title": "t", "saving": {"gpu_hours": 0.0, "gpu_hours_interval_80": [0.0, 0.0]},
            "replay": {"gain": gain, "measured": measured}}  # fmt: skip
    made = CHANGED - timedelta(hours=1)
    rows = {
        "advice_report": {"report_id": "r", "cluster": "c", "ts": made, "since": T0, "until": made,
                          "time_zone": "UTC", "currency": "USD", "coverage_ratio": 1.0,
                          "price_version": "p", "goals_version": "g", "body": "{}"},
        "recommendation": {"report_id": "r", "recommendation_id": "x", "kind": "policy_change",
                           "cluster": "c", "subject": subject, "rank": 1, "gpu_hours": 0.0,
                           "basis": "none", "expires_at": END, "body": json.dumps({"en": body})},
        "recommendation_state": {"recommendation_id": "x", "ts": CHANGED, "state": "applied",
                                 "actor": "t"},
    }  # fmt: skip
    with store.work() as work, work.transaction():
        for table, row in rows.items():
            work.append(table, {name: [value] for name, value in row.items()})


PROMISED = {"measure": "urgent", "point": 30.0, "interval_80": [20.0, 40.0]}


@pytest.mark.parametrize(("gain", "jobs"), [("urgent", 1), ("big", 1), ("team", 3)])
def test_the_group_is_judged_by_its_own_waits_at_equal_load(store, gain, jobs):
    a_site(store, GROUPS[gain])
    advised(store, gain, {**PROMISED, "point": 28.0 * jobs, "interval_80": [20.0, 40.0 * jobs]})
    [found] = judge(store, END)
    # Four hours a day less for each of the jobs. Four heavy days of seven follow on three of seven:
    # without the adjustment the hour that the load brought would be taken from the gain.
    assert found.found.gpu_hours == pytest.approx(4 * 7 * jobs)
    assert (found.found.days_before, found.found.days_after) == (7, 7)
    assert found.found.load_shift == pytest.approx((3 * 2 + 4 * 4) / (4 * 2 + 3 * 4) - 1)
    assert found.verdict is Verdict.KEPT
    assert found.change.predicted == Predicted(28.0 * jobs, 20.0, 40.0 * jobs)


def test_waits_that_only_follow_the_load_are_nothing_won_and_nothing_lost(store):
    a_site(store, GROUPS["urgent"], before=6, after=6)
    advised(store, "urgent", PROMISED)
    [found] = judge(store, END)
    assert found.found.gpu_hours == pytest.approx(0)
    assert found.verdict is Verdict.FAILED


def test_another_groups_shorter_waits_are_not_what_was_promised(store):
    a_site(store, GROUPS["big"])
    advised(store, "urgent", PROMISED)
    [found] = judge(store, END)
    assert found.verdict is Verdict.UNSEEN  # urgent work waited on neither side


def test_work_is_urgent_by_the_goals_where_they_name_it(store):
    a_site(store, GROUPS["team"])
    goals = Goals.model_validate(
        {"class": [{"name": "demo", "match": {"team": "c"}, "max_wait_p95": "15m"}]}
    )
    advised(store, "urgent", PROMISED)
    [found] = judge(store, END, goals=goals)
    assert found.found.gpu_hours == pytest.approx(4 * 7 * 3)
    assert found.verdict is Verdict.BETTER


def test_a_range_without_a_point_is_judged_by_its_middle_and_kept_in_hours_of_waiting(store):
    a_site(store, GROUPS["big"])
    advised(store, "big", {"measure": "big", "point": None, "interval_80": [20.0, 40.0]})
    found = judge(store, END)
    with store.work() as work:
        save_outcomes(work, found, END)
        [row] = outcomes(work)
    assert (row["unit"], row["predicted"], row["verdict"]) == ("wait_hours", 30.0, "kept")
    assert row["realised"] == pytest.approx(28)


def test_without_replays_waits_are_not_judged(store):
    a_site(store, GROUPS["big"])
    advised(store, "big", PROMISED)
    assert judge(store, END, replays=False) == []


def test_a_change_of_checkpoints_alone_is_judged_by_lost_work_whatever_it_was_advised_for(store):
    a_site(store, GROUPS["big"])
    advised(store, "big", PROMISED, subject="checkpoint_half")
    with store.work() as work:
        [change] = changes(work, END)
    assert (change.waits, change.unit) == (None, "gpu_hours")
    assert change.measure is not None
