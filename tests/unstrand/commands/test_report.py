"""Reports through the real command: they add up in every grouping, and refuse clearly."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from collector.demo import PLANTED, generate
from collector.demo.fleet import FLEET
from collector.store import Store
from unstrand.clock import utc_now

WINDOW = ("--since", "2026-10-05", "--until", "2026-11-02")
INSTALLED_GPU_HOURS = 96 * 28 * 24


@pytest.fixture
def report(cli, demo_db):
    def call(*arguments):
        answer = cli("report", *arguments, *WINDOW, "--db", demo_db, "--json")
        assert answer.code == 0, answer.err
        return answer.json

    return call


def added(document, column="cost"):
    return sum((Decimal(str(row[column])) for row in document["rows"]), Decimal(0))


def by(document, key):
    return {row[key]: row for row in document["rows"]}


def test_the_installed_command_prints_a_ledger_whose_identity_is_zero(demo_db):
    unstrand = Path(sys.executable).with_name("unstrand")
    answer = subprocess.run(
        [unstrand, "report", "ledger", "--db", demo_db, *WINDOW, "--format", "json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    document = json.loads(answer.stdout)
    assert document["identity"] == {"gpu_seconds_difference": 0, "cost_difference": "0"}
    assert document["total"]["gpu_hours"] == INSTALLED_GPU_HOURS
    assert document["window"]["since"] == "2026-10-05T00:00:00Z"


@pytest.mark.parametrize(
    "keys", ["node", "user", "gpu_model", "day", "class", "team,gpu_model", "job", "queue,week"]
)
def test_every_grouping_adds_up_to_the_cost_by_team(report, keys):
    teams, other = report("cost", "--by", "team"), report("cost", "--by", keys)
    total = Decimal(teams["total"]["cost"])
    assert total > 100_000
    assert added(teams) == added(other) == total == Decimal(other["total"]["cost"])
    assert float(added(other, "gpu_hours")) == pytest.approx(INSTALLED_GPU_HOURS, abs=1e-6)


def test_the_ledger_and_the_cost_report_are_the_same_money(report):
    assert report("ledger")["total"]["cost"] == report("cost")["total"]["cost"]


def test_the_two_teams_stand_out_as_planted(report):
    teams = by(report("cost", "--by", "team"), "team")
    for key in ("low_utilisation", "high_utilisation"):
        row = teams[PLANTED[key].team]
        measured = row["used_gpu_hours"] + row["lost_gpu_hours"] + row["allocated_idle_gpu_hours"]
        assert row["used_gpu_hours"] / measured == pytest.approx(PLANTED[key].activity, abs=0.005)
    assert "unmapped" in teams


def test_held_time_is_what_the_generator_handed_out(report):
    facts = generate()
    jobs = by(report("cost", "--by", "job"), "job")
    for key in ("cpu_hog", "memory_hog", "waiting_gang", "idle_notebook_1", "idle_after_use"):
        held = sum(jobs[run.job.job_id]["held_gpu_hours"] for run in facts.runs_of(key))
        assert held == pytest.approx(facts.held_gpu_hours(key), abs=1e-6)


def test_an_idle_notebook_is_all_idle(report):
    (run,) = generate().runs_of("idle_notebook_1")
    row = by(report("cost", "--by", "job"), "job")[run.job.job_id]
    assert row["used_gpu_hours"] == 0
    assert row["allocated_idle_gpu_hours"] == row["held_gpu_hours"] > 1000


def test_the_planted_node_faults_have_their_classes(report):
    classes = {
        (row["node"], row["class"]): row["gpu_hours"]
        for row in report("ledger", "--by", "node,class")["rows"]
    }
    drained, failed, kept = (
        PLANTED[key] for key in ("drained_node", "failed_node", "unused_reservation")
    )
    assert classes[failed.node, "failed"] == 4 * 6
    # Work that ran when the drain or the reservation began may finish.
    since = generate().tables["fact_window"]["until"][-1]
    assert (
        9 * 24 * 8
        < classes[drained.node, "drained"]
        <= ((since - drained.begin).total_seconds() / 3600 * 8)
    )
    assert 0.9 < classes[kept.node, "reserved"] / (
        (kept.end - kept.begin).total_seconds() / 3600 * 4
    ) <= 1  # fmt: skip


def test_the_moved_account_differs_as_was_and_as_is_with_the_same_total(report):
    was, now = report("cost"), report("cost", "--as-is")
    assert was["total"]["cost"] == now["total"]["cost"]
    assert by(was, "team")["vision"]["cost"] != by(now, "team")["vision"]["cost"]


def test_csv_and_parquet_are_the_same_rows_as_json(cli, report, demo_db, tmp_path):
    document = report("cost")
    text = cli("report", "cost", *WINDOW, "--db", demo_db, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(text.out)))
    assert [row["cost"] for row in rows] == [row["cost"] for row in document["rows"]]
    assert text.err.splitlines()[-1] == "identity  0 GPU-seconds, 0 USD"
    file = tmp_path / "cost.parquet"
    cli("report", "cost", *WINDOW, "--db", demo_db, "--format", "parquet", "--out", file)
    assert sum(pq.read_table(file).column("cost").to_pylist()) == added(document)


def test_the_table_ends_with_the_identity(cli, demo_db):
    out = cli("report", "ledger", *WINDOW, "--db", demo_db).out.splitlines()
    assert out[-1] == "identity  0 GPU-seconds, 0 USD"
    assert any(line.startswith("total") and "64,512.0" in line for line in out)


def test_without_a_window_it_is_the_last_four_weeks_that_are_known(cli, demo_db):
    answer = cli("report", "ledger", "--db", demo_db, "--json")
    assert answer.json["window"]["since"] == "2026-10-05T00:00:00Z"
    assert answer.json["window"]["until"] == "2026-11-02T00:00:00Z"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "tem"], "cannot group by 'tem'"),
        (["--cluster", "mars"], "no cluster 'mars'"),
        (["--since", "2026-11-03"], "--since must lie before --until"),
        (["--time-zone", "Mars/Olympus"], "unknown time zone"),
        (["--time-zone", "Europe"], "unknown time zone"),
        (["--since", "2020-01-01"], "2497 days, more than 400"),
        (["--since", "0001-01-01"], "leaves the years 1900 to 2200"),
        (["--until", "0001-01-02"], "before the year 1"),
    ],
)
def test_a_question_that_has_no_answer_is_refused_with_the_way_out(
    cli, demo_db, arguments, message
):
    answer = cli("report", "cost", "--until", "2026-11-02", *arguments, "--db", demo_db)
    assert answer.code == 1
    assert message in answer.err
    assert answer.out == ""


def test_an_unknown_cluster_without_a_window_is_not_an_empty_store(cli, demo_db):
    answer = cli("report", "cost", "--cluster", "mars", "--db", demo_db)
    assert answer.code == 1
    assert "no facts of a cluster 'mars'" in answer.err


def test_json_and_another_format_contradict_each_other(cli, demo_db):
    assert cli("report", "cost", "--db", demo_db, "--json", "--format", "csv").code == 2


def test_an_empty_store_says_what_to_do(cli, tmp_path):
    Store.open(tmp_path / "s.duckdb", clock=utc_now).close()
    answer = cli("report", "ledger", "--db", tmp_path / "s.duckdb")
    assert answer.code == 1
    assert "unstrand import slurm" in answer.err


def test_a_server_that_does_not_answer_is_named(cli, unused_port):
    answer = cli("report", "ledger", "--server", f"http://127.0.0.1:{unused_port}")
    assert answer.code == 1
    assert f"127.0.0.1:{unused_port}" in answer.err


def test_stranding_names_the_hogs_team_and_adds_up_to_the_ledger(report):
    document = report("stranding", "--by", "team")
    classes = by(report("ledger"), "class")
    hours = {}
    for row in document["rows"]:
        hours[row["class"]] = hours.get(row["class"], 0) + row["gpu_hours"]
    for name in ("stranded_cpu", "stranded_mem"):
        assert hours[name] == pytest.approx(classes[name]["gpu_hours"], abs=1e-6)
    causers = {(r["class"], r["team"]) for r in document["rows"] if r["role"] == "causer"}
    assert ("stranded_cpu", PLANTED["cpu_hog"].team) in causers
    assert ("stranded_mem", PLANTED["memory_hog"].team) in causers
    # Rows are shown to the billionth of an hour; what is left is their rounding.
    assert document["identity"]["gpu_seconds_difference"] == pytest.approx(0, abs=1e-3)


def test_the_waiting_gangs_team_is_named_as_the_one_who_waits(report):
    rows = report("stranding", "--by", "team")["rows"]
    waiters = {row["team"] for row in rows if row["class"] == "gang_wait"}
    assert PLANTED["waiting_gang"].team in waiters


def test_why_a_job_cannot_start_is_told_node_by_node_with_the_smallest_release(cli, demo_db):
    question = ("report", "stranding", "--db", demo_db, "--at", "2026-10-14T12:00", "--gpus", "8")
    answer = cli(*question, "--json")
    assert answer.code == 0, answer.err
    document = answer.json
    assert document["at"] == "2026-10-14T12:00:00Z"
    nodes = {row["node"]: row for row in document["nodes"]}
    runs = {run for row in nodes.values() for run in row["release"]}
    assert set(document["release"] or ()) <= runs
    told = cli(*question)
    assert f"verdict   {document['verdict']}" in told.out
    many = cli("report", "stranding", "--db", demo_db, "--gpus", "8", "--nodes", "400", "--json")
    assert (many.json["at"], many.json["verdict"]) == ("2026-11-02T00:00:00Z", "impossible")


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (("--nodes", "2"), "a shape needs --gpus"),
        (("--gpus", "8", "--since", "2026-10-05"), "one instant"),
        (("--gpus", "0"), "--gpus"),
    ],
)
def test_a_shape_that_is_none_is_wrong_usage(cli, demo_db, given, what):
    answer = cli("report", "stranding", "--db", demo_db, *given)
    assert (answer.code, what in answer.err) == (2, True)


def test_stranding_at_an_instant_is_in_gpus(cli, demo_db):
    hog = PLANTED["cpu_hog"]
    noon = hog.begin.replace(day=hog.begin.day + 2, hour=3).isoformat()
    answer = cli("report", "stranding", "--by", "node", "--at", noon, "--db", demo_db, "--json")
    assert answer.code == 0, answer.err
    (node,) = {FLEET[n].name for run in generate().runs_of("cpu_hog") for n, _ in run.placement}
    gpus = sum(
        r["gpus"]
        for r in answer.json["rows"]
        if (r["class"], r["node"], r["rule"]) == ("stranded_cpu", node, "profile")
    )
    assert gpus == round(gpus)
    assert 4 <= gpus <= 7


def test_coverage_names_the_darkest_node_and_both_gaps(cli, demo_db):
    answer = cli("report", "coverage", *WINDOW, "--db", demo_db, "--json")
    document = answer.json
    gap = PLANTED["telemetry_gap"]
    assert document["nodes"][0]["node"] == gap.node
    assert {"scheduler", "telemetry"} <= {found["kind"] for found in document["gaps"]}
    assert [row["account"] for row in document["unmapped"]] == ["guest"]
    assert cli("report", "coverage", *WINDOW, "--db", demo_db).code == 0
