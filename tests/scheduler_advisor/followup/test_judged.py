"""Before and after a change, at equal load; the verdicts; the record in the store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from scheduler_advisor.followup.changes import Changed, changes
from scheduler_advisor.followup.follow import Outcome
from scheduler_advisor.followup.realised import Days, Realised, realised
from scheduler_advisor.followup.record import confidence, outcomes, save_outcomes
from scheduler_advisor.followup.shift import Workload, shifts
from scheduler_advisor.followup.verdict import Predicted, Verdict, confidences, verdict

AT = datetime(2026, 11, 2, tzinfo=UTC)


def days(seed, count, load=100.0, won=0.0):
    """Blocked hours that follow the load, less what a change wins a day."""
    rng = np.random.default_rng(seed)
    asked = rng.normal(load, 15, count)
    return Days(0.4 * asked + rng.normal(0, 3, count) - won, asked)


def judged(gpu_hours=70.0, low=50.0, high=90.0, **more):
    return Realised(
        **{"gpu_hours": gpu_hours, "low": low, "high": high, "load_before": 100.0,
           "load_after": 100.0, "days_before": 28, "days_after": 28} | more
    )  # fmt: skip


def test_what_a_change_won_is_found_although_the_load_grew():
    found = realised(days(1, 28), days(2, 28, load=115, won=10))
    plain = 7 * (days(1, 28).blocked.mean() - days(2, 28, load=115, won=10).blocked.mean())
    assert plain < 45  # without the adjustment half of it is hidden by the busier weeks
    assert found.gpu_hours == pytest.approx(70, abs=12)
    assert found.low < 70 < found.high
    assert found.load_shift == pytest.approx(0.15, abs=0.05)


def test_nothing_changed_is_nothing_won_in_eight_of_ten_cases():
    inside = [
        each.low <= 0 <= each.high
        for seed in range(40)
        for each in [realised(days(seed, 28), days(1000 + seed, 28))]
    ]
    assert 0.6 <= sum(inside) / 40 <= 0.97


@pytest.mark.parametrize(
    ("found", "predicted", "expected"),
    [
        (judged(), Predicted(70, 40, 100), Verdict.KEPT),
        (judged(gpu_hours=130), Predicted(70, 40, 100), Verdict.BETTER),
        (judged(gpu_hours=20), Predicted(70, 40, 100), Verdict.WORSE),
        (judged(gpu_hours=-5), Predicted(70, 40, 100), Verdict.FAILED),
        (judged(), None, Verdict.HELPED),
        (judged(gpu_hours=5, low=-10, high=20), None, Verdict.NO_EFFECT),
        (judged(gpu_hours=-40, low=-60, high=-20), None, Verdict.HURT),
        (judged(days_after=6), None, Verdict.TOO_EARLY),
        (judged(load_after=140.0), Predicted(70, 40, 100), Verdict.WITHDRAWN),
    ],
)
def test_verdicts(found, predicted, expected):
    assert verdict(found, predicted) is expected


def test_a_wrong_prediction_lowers_the_confidence_of_its_kind_and_stays_on_record(store):
    change = Changed("a", "c", "policy_change", AT, "pack", Predicted(70, 40, 100))
    with store.work() as work:
        save_outcomes(work, [Outcome(change, judged(), Verdict.KEPT)], AT)
        before = confidence(work)[0].ratio
        other = Changed("b", "c", "policy_change", AT, "spread", Predicted(70, 40, 100))
        save_outcomes(work, [Outcome(other, judged(gpu_hours=-3), Verdict.FAILED)], AT)
        assert confidence(work)[0].ratio < before
        assert {row["verdict"] for row in outcomes(work)} == {"kept", "failed"}
        later = AT + timedelta(days=7)
        save_outcomes(work, [Outcome(change, judged(gpu_hours=1), Verdict.WORSE)], later)
        assert work.value("SELECT count(*) FROM advice_outcome") == 3
        newest = {row["subject_id"]: row["verdict"] for row in outcomes(work)}
    assert newest == {"a": "worse", "b": "failed"}


def test_cases_that_cannot_be_judged_do_not_count():
    [found] = confidences([("purchase", "helped"), ("purchase", "too_early")])
    assert (found.judged, found.held, found.ratio) == (1, 1, 2 / 3)


def test_a_mark_and_the_setting_it_speaks_of_are_one_change(store):
    with store.work() as work:
        work.execute(
            "INSERT INTO event (cluster, ts, kind, text, source) "
            "VALUES ('c', ?, 'policy_change', 'LLN off', 'mark')",
            [AT - timedelta(days=20)],
        )
        rows = (
            ("PreemptMode", "OFF", AT - timedelta(days=40), AT - timedelta(days=20, hours=-2)),
            ("PreemptMode", "REQUEUE", AT - timedelta(days=20, hours=-2), None),
            ("SchedulerType", "sched/builtin", AT - timedelta(days=40), AT - timedelta(days=5)),
            ("SchedulerType", "sched/backfill", AT - timedelta(days=5), None),
        )
        for key, value, since, until in rows:
            work.execute(
                "INSERT INTO scheduler_setting VALUES ('c', 'slurm', ?, ?, ?, ?, 'slurm')",
                [key, value, since, until],
            )
        found = changes(work, AT)
    assert [each.kind for each in found] == ["own_change", "own_change"]
    assert found[0].what == "LLN off"
    assert "sched/builtin -> sched/backfill" in found[1].what


def test_nodes_that_came_later_are_a_purchase(store):
    with store.work() as work:
        for name, since in (("n1", 60), ("n2", 60), ("n3", 10), ("n4", 10)):
            work.execute(
                "INSERT INTO node (cluster, node, gpus, owned, valid_from, source) "
                "VALUES ('c', ?, 8, true, ?, 't')",
                [name, AT - timedelta(days=since)],
            )
        [found] = changes(work, AT)
    assert (found.kind, found.gpus) == ("purchase", 16)


def test_a_shifted_workload_is_named():
    before = Workload(100, 2.0, 3600, 0.7, {"a": 0.6, "b": 0.4})
    assert shifts(before, Workload(110, 2.1, 3500, 0.75, {"a": 0.55, "b": 0.45})) == []
    found = shifts(before, Workload(100, 4.0, 3600, 0.7, {"a": 0.2, "b": 0.8}))
    assert [each.what for each in found] == ["mean_gpus", "teams"]
