from __future__ import annotations

from decimal import Decimal

import pytest

from scheduler_advisor.advice.draft import Duty
from scheduler_advisor.advice.recommendation import Basis
from scheduler_advisor.goals import Goals


def hours(rec):
    return rec.saving.gpu_hours


def test_an_open_session_that_never_ran_a_kernel_is_worth_what_it_holds_in_a_week(lab):
    lab.node()
    lab.run("7", start=24, gpus=2, activity=0.0, user="ann", name="notebook")
    rec = lab.the("held_idle")
    # It holds 2 GPUs for the 144 hours that are left of the week: 288 GPU-h at 2.00.
    assert hours(rec) == pytest.approx(288)
    assert rec.saving.cost == Decimal(576)
    assert rec.draft.owner.user == "ann"
    assert rec.draft.owner.team == "team-red"
    assert rec.draft.duty is Duty.OWNER
    assert rec.draft.variant == "never"


def test_a_session_that_worked_and_stopped_counts_from_the_hour_after_its_last_kernel(lab):
    lab.node()
    lab.run("7", gpus=1, activity=lambda h, _: 0.8 if h < 100 else 0.0)
    rec = lab.the("held_idle")
    assert hours(rec) == pytest.approx(68)  # 168 - 100
    assert rec.draft.variant == "worked"


def test_a_pause_that_is_shorter_than_the_threshold_is_left_alone(lab):
    lab.node()
    lab.run("7", activity=lambda h, _: 0.0 if h >= 167 else 0.8)
    assert lab.find("held_idle") == []


def test_the_operators_own_threshold_decides(lab):
    lab.node()
    lab.run("7", activity=lambda h, _: 0.0 if h >= 160 else 0.8)
    patient = Goals(thresholds={"held_idle": {"idle_hours": 10}})
    assert lab.find("held_idle", patient) == []
    assert len(lab.find("held_idle")) == 1


def test_silence_of_the_collector_is_not_silence_of_the_gpu(lab):
    lab.node()
    lab.run("7", activity=0.0, measured=False)
    advice = lab.advice()
    assert "held_idle" not in {rec.kind for rec in advice.recommendations}
    assert "held_idle" in {entry.kind for entry in advice.not_measured}


def test_an_ended_session_that_slept_is_advice_about_time_outs(lab):
    lab.node()
    lab.run("7", start=0, end=90, activity=lambda h, _: 0.7 if h < 40 else 0.0)
    rec = lab.the("idle_after_use")
    # 50 idle hours cost 100.00; a time-out of 2 hours keeps 2 of them.
    assert rec.current_gpu_hours == pytest.approx(50)
    assert rec.current_cost == Decimal(100)
    assert hours(rec) == pytest.approx(48)
    assert lab.find("held_idle") == []


def test_a_short_sleep_is_not_worth_a_persons_attention(lab):
    lab.node()
    lab.run("7", start=0, end=50, activity=lambda h, _: 0.7 if h < 40 else 0.0)
    assert lab.find("idle_after_use") == []  # 10 GPU-hours, below 24


def test_a_team_below_target_on_the_costly_gpus_gets_the_share_that_it_could_do_without(lab):
    lab.node()
    lab.node("t1", model="T4", gpus=4)
    lab.run("7", start=0, end=100, gpus=4, activity=0.2, account="blue", user="bob")
    lab.run("8", start=0, end=100, gpus=4, node="t1", activity=0.2, account="blue", user="bob")
    rec = lab.the("low_efficiency")
    # 400 GPU-h held at 20%; at 50% the same work would hold 160: 240 saved, 480.00.
    assert hours(rec) == pytest.approx(240, rel=1e-6)
    assert rec.saving.cost == pytest.approx(Decimal(480), rel=Decimal("1e-6"))
    assert rec.draft.owner.team == "team-blue"
    assert rec.draft.owner.user is None  # a team's advice names no person
    assert rec.draft.params["gpu_model"] == "A100"  # the cheap T4 at 20% is left alone


def test_a_busy_team_gets_no_advice(lab):
    lab.node()
    lab.run("7", start=0, end=160, gpus=8, activity=0.8)
    assert lab.advice().recommendations == []


def test_hours_without_any_kernel_belong_to_the_idle_kinds_not_to_efficiency(lab):
    lab.node()
    lab.run("7", start=0, gpus=4, activity=lambda h, _: 0.9 if h < 50 else 0.0)
    assert lab.find("low_efficiency") == []
    assert len(lab.find("held_idle")) == 1


def test_gpus_that_wait_for_the_cpu_are_found_by_the_jobs_own_cpus(lab):
    lab.node()
    run_id = lab.run("7", start=0, end=100, gpus=2, activity=0.3, cpus=16)
    lab.host(run_id, cpu=0.97, end=100)
    rec = lab.the("input_bound")
    assert rec.draft.variant == "cpu"
    # 200 GPU-h held at 30%: 40% of it is won at the target of 50%.
    assert hours(rec) == pytest.approx(80, rel=1e-6)


def test_gpus_that_wait_for_storage_are_told_apart_from_those_that_wait_for_the_cpu(lab):
    lab.node()
    run_id = lab.run("7", start=0, end=100, gpus=2, activity=0.3, cpus=16)
    lab.host(run_id, cpu=0.97, io=0.4, end=100)
    assert lab.the("input_bound").draft.variant == "io"


def test_without_host_samples_the_kind_says_not_measured(lab):
    lab.node()
    lab.run("7", start=0, end=100, gpus=2, activity=0.3)
    missing = {entry.kind: entry.missing for entry in lab.advice().not_measured}
    assert missing["input_bound"] == ("host",)
    assert missing["quota_unused"] == ("quota",)


def test_two_kinds_about_the_same_gpu_hours_are_grouped_and_counted_once(lab):
    lab.node()
    run_id = lab.run("7", start=0, end=100, gpus=2, activity=0.3, cpus=16)
    lab.host(run_id, cpu=0.97, end=100)
    advice = lab.advice()
    by_kind = {rec.kind: rec for rec in advice.recommendations}
    one, other = by_kind["input_bound"], by_kind["low_efficiency"]
    assert one.exclusive_group is not None
    assert one.exclusive_group == other.exclusive_group
    assert one.overlaps == (other.id,)
    assert advice.joint.gpu_hours == pytest.approx(80, rel=1e-6)  # not 160


def test_owned_capacity_is_freed_and_rented_capacity_is_cash(lab):
    lab.node()
    lab.node("cloud", owned=False)
    lab.run("7", start=0, gpus=2, activity=0.0, user="ann")
    lab.run("8", start=0, gpus=2, node="cloud", activity=0.0, user="bob")
    by_user = {rec.draft.owner.user: rec for rec in lab.find("held_idle")}
    assert by_user["ann"].saving.basis is Basis.CAPACITY
    assert by_user["ann"].saving.cash == 0
    assert by_user["bob"].saving.basis is Basis.CASH
    assert by_user["bob"].saving.cash == by_user["bob"].saving.cost
    joint = lab.advice().joint
    assert joint.basis is Basis.MIXED
    assert joint.cash == joint.cost / 2


def test_a_model_that_the_operator_can_give_back_is_cash(lab):
    lab.node()
    lab.run("7", start=0, gpus=2, activity=0.0)
    goals = Goals.model_validate({"capacity": {"give_back": ["A100"]}})
    assert lab.the("held_idle", goals).saving.basis is Basis.CASH


def test_of_models_without_a_price_the_one_with_the_most_gpu_time_comes_first(lab):
    for name, model, gpus in (("a", "B100", 2), ("b", "B999", 8)):
        lab.node(name, model=model, gpus=gpus)
    subjects = [rec.draft.subject for rec in lab.find("data_quality")]
    assert [each for each in subjects if "unpriced" in each] == ["unpriced B999", "unpriced B100"]


def test_many_models_without_a_price_are_one_finding_that_names_the_largest(lab):
    for gpus, model in enumerate(("B1", "B2", "B3", "B4"), start=1):
        lab.node(f"n{gpus}", model=model, gpus=gpus)
    [rec] = [each for each in lab.find("data_quality") if each.draft.variant == "unpriced"]
    assert rec.draft.params["gpu_model"] == "B4, B3 +2"
    assert rec.draft.params["gpu_hours"] == pytest.approx((1 + 2 + 3 + 4) * 168)


def test_gpus_of_no_model_are_to_be_named_before_they_can_be_priced(lab):
    lab.node(model=None)
    lab.samples.clear()
    variants = [rec.draft.variant for rec in lab.find("data_quality")]
    assert "no_model" in variants
    assert "unpriced" not in variants


def test_a_model_without_a_price_is_told_in_gpu_hours_and_flagged_first(lab):
    lab.node(model="A100")
    lab.node("x", model="B999", gpus=4)
    lab.samples.clear()
    lab.models["x"] = ("A100", 4)
    lab.run("7", start=0, gpus=2, node="x", activity=0.0)
    advice = lab.advice()
    first = advice.recommendations[0]
    assert (first.kind, first.draft.variant) == ("data_quality", "unpriced")
    idle = next(rec for rec in advice.recommendations if rec.kind == "held_idle")
    assert idle.saving.cost is None
    assert idle.saving.gpu_hours == pytest.approx(336)
