"""The golden cases of the ledger's design."""

from __future__ import annotations

from decimal import Decimal

import pytest

from analytics.ledger.settings import put_setting
from analytics.reports import cost_report
from analytics.window import EPOCH


def test_1_one_node_in_every_kind_of_use_costs_exactly_its_price(site):
    site.node().known().price("6.88")
    site.run(gpus=4, cpus=48, util=0.75, until=1)
    site.xid(0, uuid="broken").wait(4)
    site.demand(cpu=16, mem=0).built()
    assert site.hours_of() == {
        "used": 3.0, "allocated_idle": 1.0, "stranded_cpu": 2.0, "gang_wait": 1.0, "failed": 1.0,
    }  # fmt: skip


def test_2_a_price_that_changes_at_half_past_is_charged_half_and_half(site):
    site.node().known().price("6.88").price("8.00", since=0.5).built()
    report = cost_report(site.store, site.window, ("node",))
    assert report.total["cost"] == Decimal("59.52")
    assert report.identity.holds


def test_3_the_idle_a100_and_the_busy_t4_stand_side_by_side(site):
    site.hours = 100
    site.node("a", gpus=1, model="a100").node("t", gpus=1, model="t4").known()
    site.price("6.00", model="a100").price("0.50", model="t4")
    site.run(node="a", account="team-a", util=0.30, until=100)
    site.run(node="t", account="team-b", util=0.95, until=100)
    site.team("A", account="team-a").team("B", account="team-b").built()
    cost = {key: row["cost"] for key, row in site.by("team", "class").items()}
    assert cost == {
        ("A", "used"): 180, ("A", "allocated_idle"): 420,
        ("B", "used"): Decimal("47.50"), ("B", "allocated_idle"): Decimal("2.50"),
    }  # fmt: skip
    teams = site.by("team")
    per_used = [teams[(t,)]["cost"] / teams[(t,)]["used_gpu_hours"] for t in "AB"]
    assert [round(x, 3) for x in per_used] == [Decimal("20.000"), Decimal("0.526")]


def test_4_a_moved_account_is_reported_as_it_was_and_as_it_is_now(site):
    site.hours = 240
    site.node(gpus=1).known().price("1.00").run(util=None, until=240)
    site.team("old", account="lab").team("new", account="lab", since=120).built()
    was = {k[0]: row["cost"] for k, row in site.by("team", as_of="was").items()}
    now = {k[0]: row["cost"] for k, row in site.by("team", as_of="now").items()}
    assert was == {"old": 120, "new": 120}
    assert now == {"new": 240}


def test_5_without_samples_held_time_is_unmeasured_and_without_a_scheduler_unknown(site):
    site.hours = 3
    site.node().known(0, 1).known(2, 3).price("1.00")
    site.run(gpus=2, util=None, until=3, run_id="proven")
    site.measure(1.0, 2, 3, "n1", "g0", "proven").measure(1.0, 2, 3, "n1", "g1", "proven")
    site.built()
    assert site.hours_of() == pytest.approx({
        # The first sample after the gap speaks for two steps, one of them before hour 2.
        "used": 2.0 + 2 / 60, "allocated_unmeasured": 4.0 - 2 / 60, "unknown": 6.0, "free": 12.0,
    })  # fmt: skip
    report = cost_report(site.store, site.window, ("node",))
    assert report.coverage_ratio == pytest.approx(1 - (10 - 2 / 60) / 24)


def test_5_a_run_that_accounting_proves_later_turns_unknown_into_unmeasured(site):
    site.node().known(0, 0.5).built()
    assert site.hours_of() == {"free": 4.0, "unknown": 4.0}
    site.run(gpus=2, until=1)
    assert site.refreshed() == 1
    assert site.hours_of() == {"allocated_unmeasured": 2.0, "free": 3.0, "unknown": 3.0}


def test_6_a_time_sliced_gpu_is_never_charged_more_than_once(site):
    site.node(gpus=1).known().price("4.00")
    site.run(uuids=["g0"], share=(2, 4), until=1)
    site.built()
    assert site.hours_of() == {"allocated_unmeasured": 0.5, "free": 0.5}
    assert sum(site.cost_of().values()) == Decimal("4.00")


def test_7_a_preempted_run_without_marks_may_have_lost_everything(site):
    site.hours = 504
    site.node().known()
    run = site.run(gpus=8, until=504, state="PREEMPTED")
    for gpu in range(8):
        site.measure(1.0, 0, 504, "n1", f"g{gpu}", run, step_s=3600)
    site.built()
    assert site.hours_of() == {"used": 4032.0}
    assert site.store.value("SELECT CAST(sum(possibly_lost) AS BIGINT) FROM ledger_hour") == (
        4032 * 3_600_000_000
    )


def test_7_a_checkpoint_40_minutes_before_bounds_what_was_lost(site):
    site.hours = 5
    site.node().known()
    run = site.run(gpus=8, until=5, state="PREEMPTED", util=0.5)
    site.checkpoint(5 - 40 / 60, run).built()
    hours = site.hours_of()
    assert hours["lost"] == pytest.approx(5.3333333 * 0.5, abs=1e-6)
    assert hours["used"] + hours["lost"] == pytest.approx(20.0)
    assert not site.store.value("SELECT CAST(sum(possibly_lost) AS BIGINT) FROM ledger_hour")


def half_full(site, limit_h=10, **topology):
    """Two nodes of 8, each half held by a run with a time limit."""
    site.known()
    for nth in (1, 2):
        site.node(f"n{nth}", cpus=None, mem_gib=None, leaf=f"leaf{nth}")
        site.run(gpus=4, node=f"n{nth}", util=1.0, limit_h=limit_h)
    return site


def fillable(site):
    return site.store.value("SELECT CAST(sum(fillable) AS BIGINT) FROM ledger_hour") / 3.6e9


def test_8_eight_free_gpus_on_two_nodes_are_stranded_by_shape_and_partly_fillable(site):
    half_full(site).wait(8, since=0)
    site.wait(2, since=0, limit_h=1)
    site.built()
    assert site.hours_of() == {"used": 8.0, "stranded_shape": 8.0}
    assert fillable(site) == 2.0


def test_8_under_one_leaf_switch_the_same_gpus_are_stranded_by_topology(site):
    half_full(site).wait(8, nodes=2, topology="leaf")
    site.built()
    assert site.hours_of() == {"used": 8.0, "stranded_topology": 8.0}


def test_8_too_few_gpus_in_all_are_a_gang_wait_with_a_fillable_part(site):
    site.node(cpus=None, mem_gib=None).known()
    site.run(gpus=3, util=1.0, limit_h=2)
    site.wait(8)
    site.wait(3, limit_h=2)
    site.built()
    assert site.hours_of() == {"used": 3.0, "gang_wait": 5.0}
    assert fillable(site) == 3.0


def test_8_a_gap_is_not_fillable_by_a_job_that_would_delay_the_head(site):
    site.node(cpus=None, mem_gib=None).known()
    site.run(gpus=3, util=1.0, limit_h=2)
    site.wait(8)
    site.wait(3, limit_h=2.1)
    site.built()
    assert fillable(site) == 0.0


def test_9_a_job_over_its_own_limit_blocks_only_what_it_would_fit_on(site):
    site.node(cpus=None, mem_gib=None).known()
    site.wait(4, run_id="over")
    site.wait(16, run_id="too-big").queue_tick(0, "over", reason="QOSMaxGRESPerUser")
    site.queue_tick(0, "too-big", reason="QOSMaxGRESPerUser").built()
    assert site.hours_of() == {"policy_blocked": 4.0, "free": 4.0}
    rules = site.store.rows("SELECT DISTINCT class, role, rule FROM ledger_cause")
    assert rules == [{"class": "policy_blocked", "role": "waiter", "rule": "limit"}]


def test_a_job_that_fits_is_policy_only_after_a_pass_of_the_scheduler(site):
    site.node(cpus=None, mem_gib=None).known().wait(4, since=0.5)
    site.built()
    assert site.hours_of() == pytest.approx(
        {"policy_blocked": 4 * 29 / 60, "free": 8 - 4 * 29 / 60}
    )


def test_10_a_draining_node_keeps_its_job_and_a_broken_gpu_fails_under_it(site):
    site.hours = 3
    site.node().known().state("drained")
    run = site.run(gpus=2, until=2, util=1.0)
    site.xid(1, uuid=f"n1-{run}-0", run_id=run).built()
    assert site.hours_of() == {
        "used": 3.0, "failed_held": 1.0, "failed": 1.0, "drained": 19.0,
    }  # fmt: skip


def test_a_sample_after_a_repair_says_nothing_of_the_time_in_which_the_gpu_was_broken(site):
    site.hours = 4
    site.node(gpus=2).known().state("drained", 1.5, 2)
    run = site.run(gpus=2, until=4)
    uuid = f"n1-{run}-0"
    site.xid(1, uuid=uuid, run_id=run)
    site.measure(1.0, 0, 1, "n1", uuid, run)
    site.measure(1.0, 2, 3, "n1", uuid, run, step_s=3600.0)  # back to 1, when it was broken
    site.built()
    assert site.hours_of() == {"used": 2.0, "failed_held": 1.0, "allocated_unmeasured": 5.0}


def test_11_one_job_with_all_the_memory_strands_the_rest_and_is_named(site):
    site.node().known()
    run = site.run(gpus=1, cpus=8, mem_gib=512, until=1, util=1.0)
    site.built()
    assert site.hours_of() == {"used": 1.0, "stranded_mem": 7.0}
    causes = site.store.rows(
        "SELECT class, rule, run_id, gpu_us, release_mem_mib FROM ledger_cause "
        "JOIN ledger_run USING (run_key)"
    )
    assert causes == [
        {"class": "stranded_mem", "rule": "profile", "run_id": run, "gpu_us": 7 * 3_600_000_000,
         "release_mem_mib": 448 * 1024},
    ]  # fmt: skip


def test_12_the_scarcer_of_cpu_and_memory_names_the_stranding(site):
    site.node(cpus=40, mem_gib=192).known()
    site.demand(cpu=8, mem=64).built()
    assert site.hours_of() == {"free": 3.0, "stranded_mem": 5.0}


def test_13_headroom_is_reserved_however_many_jobs_wait(site):
    site.node().known().wait(8)
    with site.store.work() as work:
        put_setting(work, "headroom_gpus", 4, since=EPOCH, actor="test")
    site.built()
    assert site.hours_of() == {"reserved": 4.0, "gang_wait": 4.0}


def test_a_gpu_that_a_process_uses_and_nobody_holds_is_unattributed(site):
    site.node(cpus=None, mem_gib=None).known()
    site.measure(0.9, 0, 0.5, "n1", "g3")
    site.built()
    assert site.hours_of() == pytest.approx({"unattributed": 0.5, "free": 7.5})


def test_rogue_use_is_not_seen_where_an_unnamed_holder_may_be_the_one(site):
    site.node(cpus=None, mem_gib=None).known().run(gpus=2, until=1)
    site.measure(0.9, 0, 1, "n1", "g3")
    site.built()
    assert site.hours_of() == {"allocated_unmeasured": 2.0, "free": 6.0}


def test_without_a_scheduler_telemetry_alone_stays_unknown(site):
    site.node(cpus=None, mem_gib=None).measure(0.9, 0, 1, "n1", "g3")
    site.built()
    assert site.hours_of() == {"unknown": 8.0}


def test_lost_work_is_on_the_preemptors_bill_and_hardware_failures_on_the_platforms(site):
    site.hours = 4
    site.node().node("n2").known().price("1.00").team("Mine", account="lab").team(
        "Rush", account="vip"
    )
    mine = site.run(gpus=8, until=2, state="PREEMPTED", util=1.0)
    site.run(gpus=8, since=2.01, until=4, account="vip", util=1.0)
    other = site.run(gpus=8, node="n2", until=3, state="NODE_FAIL", util=1.0)
    site.checkpoint(1, mine).checkpoint(2, other).built()
    cost = {key: row["cost"] for key, row in site.by("team", "class").items() if row["cost"]}
    assert cost[("Rush", "lost")] == 8
    assert cost[(None, "lost")] == 8
    assert ("Mine", "lost") not in cost
