from __future__ import annotations

from decimal import Decimal

import pytest

from scheduler_advisor.advice.draft import Duty
from scheduler_advisor.advice.saving import joint_saving


def test_a_node_drained_for_days_is_worth_a_week_of_its_gpus(lab):
    lab.node()
    lab.state(since=48, reason="fan")
    rec = lab.the("drained_nodes")
    assert rec.saving.gpu_hours == pytest.approx(8 * 120)
    assert rec.saving.cost == Decimal(1920)
    assert rec.draft.owner.label() == "platform"
    assert rec.draft.params["days"] == pytest.approx(5)
    assert "state=resume" in rec.draft.commands["apply"]
    assert "fan" in rec.draft.commands["rollback"]


def test_a_node_in_repair_since_yesterday_and_one_that_is_back_are_left_alone(lab):
    lab.node()
    lab.node("n2")
    lab.state("n1", since=150)
    lab.state("n2", since=0, until=120)
    assert lab.find("drained_nodes") == []


def test_every_failure_but_the_first_of_a_loop_is_avoidable(lab):
    lab.node()
    for attempt in range(1, 5):
        lab.run("7", attempt=attempt, start=attempt * 3, end=attempt * 3 + 2, gpus=2,
                state="FAILED", reason="NonZeroExitCode", name="train", user="nova")  # fmt: skip
    rec = lab.the("requeue_loops")
    assert rec.current_gpu_hours == pytest.approx(16)
    assert rec.saving.gpu_hours == pytest.approx(12)
    assert rec.draft.params["failures"] == 4
    assert rec.draft.owner.user == "nova"


def test_failures_with_a_success_between_them_are_no_loop(lab):
    lab.node()
    states = ("FAILED", "FAILED", "COMPLETED", "FAILED", "FAILED")
    for place, state in enumerate(states):
        lab.run(f"{place}", start=place * 3, end=place * 3 + 2, gpus=4, state=state, name="train")
    assert lab.find("requeue_loops") == []


def test_a_reservation_that_stood_empty_is_given_back(lab):
    lab.node()
    lab.reserve(gpus=4, since=0, until=50, account="blue")
    rec = lab.the("reserved_unused")
    assert rec.saving.gpu_hours == pytest.approx(200)
    assert rec.draft.owner.team == "team-blue"
    assert rec.draft.params["unused_ratio"] == pytest.approx(1)


def test_a_reservation_that_is_mostly_used_is_left_alone(lab):
    lab.node()
    lab.reserve(gpus=8, since=0, until=50)
    lab.run("7", start=0, end=50, gpus=6, activity=0.8)
    assert lab.find("reserved_unused") == []


def red_may_hold(gpus, lab, store):
    """A quota of account red for the whole window."""
    lab.built()
    with store.work() as work:
        work.append("quota", {"cluster": ["c"], "name": ["red"], "account": ["red"],
                              "gpu_model": ["A100"], "gpus": [gpus],
                              "valid_from": [lab.window.since], "source": ["test"]})  # fmt: skip


def test_quota_that_nobody_uses_while_others_wait_is_lent(lab, store):
    lab.node()
    lab.run("7", start=0, end=160, gpus=2, account="red", measured=False)
    lab.run("8", start=60, end=100, submit=20, gpus=2, first=4, account="blue", measured=False)
    red_may_hold(6, lab, store)
    rec = lab.the("quota_unused")
    # 6 GPUs of quota, 2 used at peak: of the 4 that are free the other job would have had 2 for
    # the 40 hours that it waited.
    assert rec.saving.gpu_hours == pytest.approx(2 * 40)
    assert rec.saving.cost == Decimal(160)  # 2.00 USD each
    assert rec.draft.params["waited_hours"] == pytest.approx(40)


def test_lent_quota_wins_no_more_than_is_free_and_nothing_for_jobs_that_need_more(lab, store):
    lab.node()
    lab.run("7", start=0, end=160, gpus=2, account="red", measured=False)
    # From 20 to 60 three jobs ask for 2 each: 4 are free. From 100 to 130 one asks for 5.
    for job in "abc":
        lab.run(job, start=60, end=61, submit=20, gpus=2, first=2, account="blue", measured=False)
    lab.run("d", start=130, end=131, submit=100, gpus=5, first=2, account="blue", measured=False)
    red_may_hold(6, lab, store)
    rec = lab.the("quota_unused")
    assert rec.saving.gpu_hours == pytest.approx(4 * 40)
    assert rec.draft.params["waited_hours"] == pytest.approx(3 * 40 + 30)


def test_quota_that_is_lent_while_every_gpu_is_held_wins_nothing(lab, store):
    lab.node()
    lab.run("7", start=0, end=160, gpus=2, account="red", measured=False)
    lab.run("8", start=0, end=90, gpus=5, first=2, account="blue", measured=False)
    lab.run("9", start=100, end=120, submit=20, gpus=4, first=2, account="blue", measured=False)
    red_may_hold(6, lab, store)
    # Of the 4 that red leaves, 1 is free until the other job ends, 4 for ten hours more.
    rec = lab.the("quota_unused")
    assert rec.saving.gpu_hours == pytest.approx(1 * 70 + 4 * 10)


def test_two_quotas_that_the_same_jobs_would_have_used_are_counted_once(lab, store):
    lab.node()
    lab.run("7", start=60, end=100, submit=20, gpus=2, account="blue", measured=False)
    red_may_hold(4, lab, store)
    with store.work() as work:
        work.append("quota", {"cluster": ["c"], "name": ["green"], "account": ["green"],
                              "gpu_model": ["A100"], "gpus": [4],
                              "valid_from": [lab.window.since], "source": ["test"]})  # fmt: skip
    advice = lab.advice()
    found = [rec for rec in advice.recommendations if rec.kind == "quota_unused"]
    assert [rec.saving.gpu_hours for rec in found] == [pytest.approx(2 * 40)] * 2
    assert found[0].overlaps == (found[1].id,)
    quotas = joint_saving([rec.draft for rec in found], lab.window)
    assert quotas.gpu_hours == pytest.approx(2 * 40)


def test_quota_of_one_model_is_not_what_a_job_on_another_waited_for(lab, store):
    lab.node()
    lab.node("t1", model="T4", gpus=4)
    lab.run("7", start=60, end=100, submit=20, node="t1", gpus=2, account="blue", measured=False)
    red_may_hold(6, lab, store)
    assert lab.find("quota_unused") == []


def test_a_pool_asleep_at_night_counts_only_what_is_reliably_free(lab):
    lab.node("t1", model="T4", gpus=4)
    for day in range(7):
        start = day * 24
        if day < 5:
            lab.run(f"d{day}", start=start + 6, end=start + 20, node="t1", gpus=4, measured=False)
        lab.run(f"n{day}", start=start, end=start + 6, node="t1", gpus=1, measured=False)
    rec = lab.the("night_idle")
    # Night and weekend hours: 5 x 10 + 48 = 98. One GPU is held from 0 to 6: 3 are reliably free.
    assert rec.draft.params["gpus"] == 3
    assert rec.saving.gpu_hours == pytest.approx(98 * 3)
    assert rec.saving.cost == Decimal(147)


def test_a_pool_that_is_free_by_day_too_is_not_asleep_but_too_big(lab):
    lab.node("t1", model="T4", gpus=4)
    lab.run("1", start=0, end=160, node="t1", gpus=1, measured=False)
    assert lab.find("night_idle") == []


def test_ranks_that_spin_without_power_hang(lab):
    lab.node()
    lab.idle_gpu("n1", 7)

    def power_is_low(hour, _):
        return 1.0

    lab.run("7", start=0, end=30, gpus=4, activity=power_is_low, power=55_000.0, name="allreduce")
    rec = lab.the("gang_hang")
    assert rec.draft.params["hours"] == 30
    assert rec.saving.gpu_hours == pytest.approx(120)
    assert rec.draft.params["name"] == "allreduce"


@pytest.mark.parametrize(("watts", "hangs"), [(13, True), (15, False)])
def test_where_no_gpu_ever_idles_the_data_sheet_tells_the_floor(lab, watts, hangs):
    lab.node(model="T4")  # a board of 70 W: a fifth is 14
    lab.run("7", start=0, end=30, gpus=4, activity=1.0, power=watts * 1000.0)
    found = lab.find("gang_hang")
    assert len(found) == hangs
    if hangs:
        assert [each.name for each in found[0].draft.assumptions] == ["board_ratio"]
        assert found[0].saving.gpu_hours == pytest.approx(120)


def test_where_neither_idle_gpus_nor_a_data_sheet_tell_the_floor_nothing_hangs(lab, monkeypatch):
    monkeypatch.setattr("scheduler_advisor.advice.kinds.gang_hang.board_watts", dict)
    lab.node()
    lab.run("7", start=0, end=30, gpus=4, activity=1.0, power=20_000.0)
    assert lab.find("gang_hang") == []


def test_ranks_that_work_at_full_power_do_not_hang(lab):
    lab.node()
    lab.idle_gpu("n1", 7)
    lab.run("7", start=0, end=30, gpus=4, activity=1.0)
    assert lab.find("gang_hang") == []


def test_gpus_of_a_run_that_never_start_are_half_a_gang(lab):
    lab.node()
    lab.run("7", start=0, end=20, gpus=4, name="ddp", activity=lambda _, i: 0.9 if i < 3 else 0.0)
    rec = lab.the("gang_half")
    assert (rec.draft.params["silent"], rec.draft.params["gpus"]) == (1, 4)
    assert rec.saving.gpu_hours == pytest.approx(20)


def test_multi_node_parts_that_start_apart_show_that_gang_scheduling_is_off(lab):
    lab.node("n1")
    lab.node("n2")
    for number in range(3):
        start = number * 20
        lab.run(str(number), start=start, end=start + 12, measured=False,
                node=[("n1", 4, start), ("n2", 4, start + 2)])  # fmt: skip
    rec = lab.the("gang_off")
    # Three times four GPUs waited two hours for the other node.
    assert rec.saving.gpu_hours == pytest.approx(24)
    assert rec.draft.duty is Duty.PLATFORM
    assert rec.draft.params["apart_minutes"] == pytest.approx(120)


def test_work_after_the_last_checkpoint_of_a_preempted_run_is_lost_and_a_notice_saves_it(lab):
    lab.node()
    lab.run("7", start=0, end=30, gpus=8, activity=0.5, state="PREEMPTED", name="pretrain")
    for hour in (8, 16, 24):
        lab.event("checkpoint_begin", hour - 0.05, job_id="7", run_id="7:1")
        lab.event("checkpoint_end", hour, job_id="7", run_id="7:1")
    rec = lab.the("lost_work")
    # From hour 24 to 30 on 8 GPUs, half of it active: 24 GPU-h, less one more checkpoint of 180 s.
    assert rec.current_gpu_hours == pytest.approx(24, rel=0.001)
    assert rec.saving.gpu_hours == pytest.approx(24 - 8 * 180 / 3600, rel=0.001)
    assert rec.draft.params["write_s"] == pytest.approx(180)
    assert rec.draft.params["grace_s"] == 270  # one and a half times what writing takes


def test_an_interrupted_run_without_marks_is_a_bound_and_never_a_saving(lab):
    lab.node()
    lab.run("7", start=0, end=30, gpus=8, activity=0.5, state="PREEMPTED", name="fold")
    rec = lab.the("checkpoint_unknown")
    assert rec.saving.gpu_hours == 0
    figures = {figure.name: figure for figure in rec.draft.figures}
    assert figures["possibly_lost"].value == pytest.approx(240)
    assert figures["possibly_lost"].kind == "limit"


def test_checkpoints_far_too_rare_for_the_interruptions_seen_get_dalys_interval(lab):
    lab.node()
    for number in range(4):
        start = number * 30
        lab.run(str(number), start=start, end=start + 20, gpus=8, name="sim", state="NODE_FAIL",
                measured=False)  # fmt: skip
        lab.event("checkpoint_begin", start + 15.9, job_id=str(number), run_id=f"{number}:1")
        lab.event("checkpoint_end", start + 16, job_id=str(number), run_id=f"{number}:1")
    rec = lab.the("checkpoint_interval")
    # C = 360 s, M = 20 h = 72,000 s: sqrt(2 x 360 x 72,000) - 360 = 6,840 s = 114 min; it is 960.
    assert rec.draft.params["optimum_min"] == pytest.approx(114)
    assert rec.draft.params["interval_min"] == pytest.approx(960)
    before = 360 / 57_600 + 57_600 / 144_000
    after = 360 / 6_840 + 6_840 / 144_000
    assert rec.saving.gpu_hours == pytest.approx(640 * (before - after), rel=1e-6)


def test_gpu_time_without_an_allocation_is_named_and_wins_nothing_back(lab, store, hour):
    lab.node()
    lab.run("1", start=0, end=5, gpus=1, activity=0.9)
    lab.built()
    with store.work() as work:  # the rule on stored rows: 3 GPUs for 10 hours
        work.execute(
            "UPDATE ledger_hour SET unattributed = 3 * 3600000000, free = free - 3 * 3600000000 "
            "WHERE run_key IS NULL AND hour >= ? AND hour < ?",
            [hour(20), hour(30)],
        )
    rec = lab.the("unattributed")
    assert rec.draft.params["node"] == "n1"
    assert rec.current_gpu_hours == pytest.approx(30)
    assert rec.current_cost == Decimal(60)
    assert rec.saving.gpu_hours == 0


def test_a_gap_of_the_collector_is_said_first_and_earns_nothing(lab):
    lab.node(telemetry=False)
    lab.run("7", start=0, end=160, gpus=4, activity=0.8)
    lab.samples[:] = [s for s in lab.samples if not 50 <= hours_of(s, lab) < 60]
    rec = lab.advice().recommendations[0]
    assert (rec.kind, rec.draft.variant) == ("data_quality", "telemetry_gap")
    # The sample at 60:00 speaks for 20 minutes: whole dark hours hold 9 h 40 min on 4 GPUs.
    assert rec.current_gpu_hours == pytest.approx(4 * (10 - 1 / 3))
    assert rec.saving.gpu_hours == 0


def hours_of(sample, lab):
    return (sample["ts"] - lab.window.since).total_seconds() / 3600


def test_an_hour_without_the_scheduler_is_unknown_on_every_node(lab):
    lab.node()
    lab.node("n2")
    lab.covered("scheduler", 0, 40)
    lab.covered("scheduler", 41, 168)
    rec = lab.the("data_quality")
    assert rec.draft.variant == "scheduler_gap"
    assert rec.current_gpu_hours == pytest.approx(16)


def test_an_account_of_no_team_is_named_with_its_gpu_hours(lab):
    lab.node()
    lab.run("7", start=0, end=20, gpus=2, account="guest", user="visitor", activity=0.8)
    rec = lab.the("data_quality")
    assert rec.draft.variant == "unmapped"
    assert rec.current_gpu_hours == pytest.approx(40)


def test_gpu_hours_of_jobs_that_name_nobody_are_told_as_such(lab):
    lab.node()
    lab.run("7", start=0, end=20, gpus=2, account=None, user=None, activity=0.8)
    rec = lab.the("data_quality")
    assert rec.draft.variant == "unnamed"
    assert rec.current_gpu_hours == pytest.approx(40)


def test_where_most_activity_is_dark_advice_on_activity_is_withheld_and_says_why(lab):
    lab.node()
    lab.run("1", start=0, end=20, gpus=1, activity=0.1)
    lab.run("2", start=0, gpus=7, first=1, measured=False)
    advice = lab.advice()
    withheld = {entry.kind: entry.params["coverage"] for entry in advice.not_recommended}
    assert withheld["low_efficiency"] == pytest.approx(20 / (20 + 7 * 168))
