"""`unstrand simulate` with parts that change jobs while they run: moved, resized, sharing a GPU."""

from __future__ import annotations

import csv
import json

import pytest

from unstrand.__main__ import run

HEADER = "job_id,submit,run,gpus,tasks,gpu_milli,service,min_tasks,max_tasks,preemptible\n"


@pytest.fixture
def replay(tmp_path):
    """Runs `simulate` on rows of jobs; returns rows by job id and the summary."""

    def call(rows, fleet, *settings):
        jobs, out, summary = (tmp_path / name for name in ("jobs.csv", "out.csv", "sum.json"))
        jobs.write_text(HEADER + "".join(f"{row}\n" for row in rows))
        options = [part for one in settings for part in ("--set", one)]
        command = ["simulate", "--jobs", jobs, "--fleet", fleet, "--policy", "fifo"]
        command += ["--out", out, "--summary", summary, *options]
        assert run([str(part) for part in command]) == 0
        with out.open(newline="") as text:
            found = {row["job_id"]: row for row in csv.DictReader(text)}
        return found, json.loads(summary.read_text())

    return call


def test_a_job_that_is_in_the_way_is_moved_and_the_large_one_starts(replay):
    rows = ["a,0,1000,6,1,,,,,1", "b,1,9000,4,1,,,,,1", "c,2,9000,2,1,,,,,1", "d,1001,100,8,1,,,,,"]
    before, _ = replay(rows, "2x8")
    after, told = replay(rows, "2x8", "defrag=threshold", "defrag.every_s=600")
    # c lies beside a; once a is over, c goes to b's node and d has a node to itself.
    assert before["d"]["start"] == "9001"
    assert after["d"]["start"] == "1001"
    assert [row["migrations"] for row in after.values()] == ["0", "0", "1", "0"]
    assert told["migrations"] == 1


def test_small_jobs_share_a_gpu_and_run_slower_for_it(replay):
    rows = ["a,0,100,1,1,800,,,,", "b,0,100,1,1,200,,,,"]
    found, told = replay(rows, "1x1", "sharing=time-slice", "sharing.switch_milli=100")
    assert [row["start"] for row in found.values()] == ["0", "0"]
    assert found["a"]["end"] == found["b"]["end"] == "110"
    assert told["stretched_s"]["max"] == 10
    assert sum(told["gpu_hours_by_class"].values()) == pytest.approx(110 / 3600)


def test_services_are_told_in_replica_minutes(replay):
    found, told = replay(["a,0,600,1,1,,,,,", "b,60,600,1,1,,1,,,"], "1x1")
    assert (found["b"]["start"], found["b"]["end"]) == ("600", "660")
    assert told["short_replica_minutes"] == 9


def test_what_does_not_go_together_is_refused(tmp_path, capsys):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job_id,submit,run,gpus\na,0,1,1\n")
    common = ["simulate", "--jobs", str(jobs), "--fleet", "1x8", "--policy", "easy"]
    for setting, told in (
        ("elastic=resize", "do not go with backfill easy"),
        ("topology.level=leaf", "goes with placement = topology"),
        ("defrag=sometimes", "none, hours, threshold"),
    ):
        assert run([*common, "--set", setting]) == 1
        assert told in " ".join(capsys.readouterr().err.split())
