"""Every fault of PLANTED is in the facts, and none of them in the healthy cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from collector.demo import CLUSTER, MEMBERSHIPS, PLANTED, SINCE, UNTIL, simulate, write_demo
from collector.demo.fleet import FLEET, NODE_INDEX, instant, seconds
from collector.demo.planted import SMALL_JOBS
from collector.store import Store

HOUR = 3600
GPU_TICKS = 96 * 28 * 288


@pytest.fixture(scope="module")
def stored(demo, tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "demo.duckdb"
    with Store.open(path, clock=lambda: UNTIL) as store:
        write_demo(store, demo)
        yield store


def busy_share(store, where):
    return store.value(
        f"SELECT avg(util_ratio) FROM sample JOIN job_run USING (cluster, run_id) WHERE {where}"
    )


@pytest.mark.parametrize("key", ["low_utilisation", "high_utilisation"])
def test_the_two_teams_have_the_stated_mean_utilisation(stored, key):
    fault = PLANTED[key]
    assert busy_share(stored, f"account = '{fault.team}'") == pytest.approx(
        fault.activity, abs=0.005
    )


def test_the_low_team_is_on_a100_and_the_high_one_on_t4(stored):
    rows = stored.rows(
        "SELECT account, list(DISTINCT gpu_model) AS models FROM allocation "
        "JOIN job_run USING (cluster, run_id) GROUP BY account"
    )
    models = {row["account"]: row["models"] for row in rows}
    assert models["language"] == ["A100-40"]
    assert models["speech"] == ["T4"]


@pytest.mark.parametrize(("key", "resource"), [("cpu_hog", "cpus"), ("memory_hog", "mem_mib")])
def test_a_hog_leaves_gpus_of_its_node_without_the_resource_it_took(demo, key, resource):
    (run,) = demo.runs_of(key)
    node = FLEET[run.placement[0][0]]
    left = getattr(node, resource) - getattr(run.job, resource)
    fair = getattr(node, resource) / node.gpus
    assert run.job.gpus == 1
    assert left / fair < 2  # seven GPUs remain, and at best two of them can be fed
    assert instant(run.start) == PLANTED[key].begin
    assert demo.held_gpu_hours(key) == (run.end - run.start) / HOUR


@pytest.mark.parametrize("seed", [20261005, *range(11, 21)])
def test_the_gang_waits_for_days_while_gpus_of_its_partition_are_free(seed):
    runs = simulate(seed=seed, faults=True)
    (gang,) = [run for run in runs if run.job.name == PLANTED["waiting_gang"].jobs[0]]
    assert gang.start - gang.eligible > 2 * 24 * HOUR
    free = [free_gpus(runs, "batch", at) for at in range(gang.eligible, gang.start, 900)]
    assert sum(count > 0 for count in free) / len(free) > 0.5
    assert gang.end is not None


def free_gpus(runs, partition, at):
    installed = sum(n.gpus for n in FLEET if n.partition == partition)
    held = sum(
        run.job.gpus * run.job.nodes
        for run in runs
        if run.job.partition == partition
        and run.start is not None
        and run.start <= at < (run.end or seconds(UNTIL))
    )
    return installed - held


def test_whole_node_jobs_wait_while_as_many_gpus_are_free_in_pieces(demo):
    """Fragmentation: at a time in which an 8-GPU job waits, 8 or more GPUs are free."""
    sweep = demo.runs_of("fragmentation")
    assert len({node for run in sweep for node, _ in run.placement}) >= 3
    hours = 0
    for at in range(seconds(SINCE), seconds(UNTIL), HOUR):
        waits = any(
            run.job.partition == "batch" and (run.job.nodes, run.job.gpus) == (1, 8)
            and run.eligible <= at < (run.start or run.end or seconds(UNTIL))
            for run in demo.runs
        )  # fmt: skip
        drained = 8 if at >= seconds(PLANTED["drained_node"].begin) else 0
        hours += waits and free_gpus(demo.runs, "batch", at) - drained >= 8
    assert hours > 24


@pytest.mark.parametrize("key", ["idle_notebook_1", "idle_notebook_2"])
def test_an_idle_notebook_is_still_held_and_has_measured_zeros(stored, demo, key):
    (run,) = demo.runs_of(key)
    fault = PLANTED[key]
    assert run.end is None
    assert demo.held_gpu_hours(key) == (UNTIL - fault.begin).total_seconds() / HOUR * fault.gpus
    row = stored.rows(
        "SELECT count(*) AS ticks, max(util_ratio) AS most FROM sample WHERE run_id = ?",
        [run.run_id],
    )[0]
    assert row == {"ticks": demo.held_gpu_hours(key) * 12, "most": 0.0}


def test_the_notebook_that_was_used_stops_after_twenty_hours(stored, demo):
    (run,) = demo.runs_of("idle_after_use")
    stops = instant(run.start) + timedelta(hours=20)
    halves = stored.rows(
        "SELECT ts > ? AS after_use, avg(util_ratio) AS busy FROM sample WHERE run_id = ? "
        "GROUP BY 1 ORDER BY 1",
        [stops, run.run_id],
    )
    assert halves[0]["busy"] == pytest.approx(PLANTED["idle_after_use"].activity, abs=0.05)
    assert halves[1]["busy"] == 0.0


def test_the_three_small_jobs_would_fit_on_one_gpu(stored, demo):
    rows = stored.rows(
        "SELECT name, avg(util_ratio) AS busy, max(mem_used_mib / mem_total_mib) AS memory "
        "FROM sample JOIN job_run USING (cluster, run_id) JOIN job USING (cluster, job_id) "
        "WHERE job_run.account = 'vision-ocr' GROUP BY name"
    )
    assert {row["name"] for row in rows} == set(SMALL_JOBS)
    assert sum(row["busy"] for row in rows) < 0.8
    assert sum(row["memory"] for row in rows) < 0.9
    assert demo.held_gpu_hours("small_jobs") == 3 * 12 * 28


def test_the_drained_node_has_been_drained_for_more_than_nine_days(stored):
    fault = PLANTED["drained_node"]
    row = stored.rows("SELECT node, since, until, reason FROM node_state WHERE state = 'drained'")
    assert row == [
        {"node": fault.node, "since": fault.begin, "until": None, "reason": fault.reason}
    ]
    assert (UNTIL - fault.begin).days > 9


def test_the_failed_node_loses_its_runs_and_its_samples(stored, demo):
    fault = PLANTED["failed_node"]
    lost = [run for run in demo.runs if run.state == "NODE_FAIL"]
    assert lost
    assert {FLEET[node].name for run in lost for node, _ in run.placement} == {fault.node}
    assert {run.end for run in lost} == {seconds(fault.begin) + 1200}
    assert samples_between(stored, fault) == 0


def samples_between(store, fault):
    return store.value(
        "SELECT count(*) FROM sample WHERE node = ? AND ts > ? AND ts <= ?",
        [fault.node, fault.begin, fault.end],
    )


def test_the_telemetry_gap_has_no_samples_and_nothing_else_is_missing(stored):
    gap, failed = PLANTED["telemetry_gap"], PLANTED["failed_node"]
    assert samples_between(stored, gap) == 0
    missing = 8 * 26 * 12 + 4 * 76  # ticks in 26 h on 8 GPUs, in 6 h 20 min on 4
    assert stored.value("SELECT count(*) FROM sample") == GPU_TICKS - missing
    windows = stored.rows(
        "SELECT since, until FROM fact_window WHERE kind = 'telemetry' AND node = ? ORDER BY since",
        [gap.node],
    )
    assert [(w["since"], w["until"]) for w in windows] == [(SINCE, gap.begin), (gap.end, UNTIL)]
    assert NODE_INDEX[failed.place] != NODE_INDEX[gap.place]


def test_the_scheduler_is_unknown_for_an_hour(stored):
    gap = PLANTED["scheduler_gap"]
    windows = stored.rows(
        "SELECT since, until FROM fact_window WHERE kind = 'scheduler' ORDER BY 1"
    )
    assert [(w["since"], w["until"]) for w in windows] == [(SINCE, gap.begin), (gap.end, UNTIL)]


@pytest.mark.parametrize("seed", [20261005, 11, 12, 13])
def test_the_loop_fails_fifteen_times(seed):
    runs = simulate(seed=seed, faults=True)
    loop = [run for run in runs if run.job.name == PLANTED["requeue_loop"].jobs[0]]
    assert [run.state for run in loop] == ["FAILED"] * 15


@pytest.mark.parametrize("seed", [20261005, 11, 12, 13])
def test_both_long_runs_are_preempted_once_and_run_again(seed):
    runs = simulate(seed=seed, faults=True)
    for key in ("preempted_with_marks", "preempted_without_marks"):
        names = PLANTED[key].jobs
        assert [r.state for r in runs if r.job.name in names][:2] in (
            ["PREEMPTED", "COMPLETED"],
            ["PREEMPTED", "RUNNING"],
        )


def test_only_one_of_the_preempted_runs_left_marks_the_last_two_hours_before(stored, demo):
    first, _ = demo.runs_of("preempted_with_marks")
    marks = stored.rows(
        "SELECT run_id, max(ts) AS last, count(*) AS marks FROM event "
        "WHERE kind = 'checkpoint_end' GROUP BY run_id ORDER BY last"
    )
    assert marks[0] == {
        "run_id": first.run_id, "last": instant(first.end) - timedelta(hours=2), "marks": 7,
    }  # fmt: skip
    assert first.reason.startswith("preempted by job")


def test_one_account_is_mapped_to_no_team_and_one_moves(stored):
    accounts = {r["account"] for r in stored.rows("SELECT DISTINCT account FROM job_run")}
    assert accounts - {m.account for m in MEMBERSHIPS} == {"guest"}
    assert len({m.team for m in MEMBERSHIPS}) == 4
    first, second = (m for m in MEMBERSHIPS if m.account == "robotics")
    assert first.valid_to == second.valid_from == datetime(2026, 10, 19, tzinfo=UTC)
    assert first.team != second.team


def test_t4_is_asleep_at_night_and_at_the_weekend(stored):
    share = stored.rows(
        "SELECT avg(held) FILTER (isodow(ts) < 6 AND hour(ts) BETWEEN 9 AND 16) AS work, "
        "avg(held) FILTER (hour(ts) BETWEEN 1 AND 6) AS night, "
        "avg(held) FILTER (isodow(ts) >= 6) AS weekend "
        "FROM (SELECT ts, (run_id IS NOT NULL)::INT AS held FROM sample WHERE node LIKE 't4%')"
    )[0]
    assert share["work"] > 0.7
    assert share["night"] < 0.1
    assert share["weekend"] < 0.2


def test_a_sample_names_the_run_that_held_its_gpu(stored):
    wrong = stored.value(
        "SELECT count(*) FROM sample s LEFT JOIN allocation a ON a.gpu_uuid = s.gpu_uuid "
        "AND a.start_at < s.ts AND coalesce(a.end_at, ?) >= s.ts "
        "WHERE a.run_id IS DISTINCT FROM s.run_id",
        [UNTIL],
    )
    assert wrong == 0


def test_values_lie_in_the_range_that_hardware_allows(stored):
    row = stored.rows(
        "SELECT min(util_ratio) >= 0 AND max(util_ratio) <= 1 AS util, "
        "max(mem_used_mib / mem_total_mib) <= 1 AS memory, min(power_mw) > 0 AS power "
        "FROM sample"
    )[0]
    host = stored.rows(
        "SELECT max(cpu_used / cpus) <= 1 AS cpu, max(mem_used_mib / mem_total_mib) <= 1 AS mem "
        "FROM host_sample"
    )[0]
    backwards = stored.value(
        "SELECT count(*) FROM (SELECT energy_mj - lag(energy_mj) OVER "
        "(PARTITION BY gpu_uuid ORDER BY ts) AS step FROM sample) WHERE step <= 0"
    )
    assert all(row.values())
    assert all(host.values())
    assert backwards == 0


def test_the_healthy_cluster_has_no_fault(healthy):
    assert not healthy.tables.keys() & {"node_state", "event", "reservation"}
    assert {run.state for run in healthy.runs} <= {"COMPLETED", "RUNNING", "PENDING"}
    assert min(run.job.activity for run in healthy.runs) > 0.75
    assert not [run for run in healthy.runs if run.job.name in ALL_PLANTED_JOBS]
    assert set(healthy.tables["sample"]["cluster"].to_pylist()) == {CLUSTER}
    assert len(healthy.tables["sample"]["step_s"]) == GPU_TICKS


ALL_PLANTED_JOBS = {name for fault in PLANTED.values() for name in fault.jobs}
