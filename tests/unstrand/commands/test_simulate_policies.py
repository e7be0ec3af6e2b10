"""`unstrand simulate` and `sweep` under the schedulers that people run, and with quotas."""

from __future__ import annotations

import csv
import json

import pytest

from unstrand.__main__ import run

HEADER = "job_id,submit,run,gpus,team,priority,preemptible,checkpoint_every\n"
ROWS = ("x,0,5000,4,b,0,1,600", "y,0,5000,4,b,0,1,600", "z,1000,100,4,a,1,0,600")
QUOTA = """preset = "kueue"
[quota.queues.a]
guarantee = 4
[quota.queues.b]
guarantee = 4
"""


@pytest.fixture
def files(tmp_path):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(HEADER + "".join(f"{row}\n" for row in ROWS))
    return tmp_path


def simulated(files, policy, *options):
    out, summary = files / "out.csv", files / "summary.json"
    command = ["simulate", "--jobs", files / "jobs.csv", "--fleet", "2x4", "--policy", policy]
    command += ["--out", out, "--summary", summary, *options]
    assert run([str(part) for part in command]) == 0
    with out.open(newline="") as text:
        found = {row["job_id"]: row for row in csv.DictReader(text)}
    return found, json.loads(summary.read_text())


def test_a_policy_file_with_quotas_says_how_fast_lent_gpus_come_back(files):
    policy = files / "kueue.toml"
    policy.write_text(QUOTA)
    found, told = simulated(files, policy)
    assert found["z"]["start"] == "1030"
    assert found["y"]["preemptions"] == "1"
    assert found["y"]["lost_s"] == "430"  # since its checkpoint at 600
    assert told["made_room"]["by_reclaim"]["wait_s"]["max"] == 30
    assert told["requeue_wait_s"]["max"] == 100


@pytest.mark.parametrize("name", ["slurm", "volcano", "yarn-capacity", "kai", "singularity"])
def test_every_scheduler_by_name(files, name):
    found, told = simulated(files, name)
    assert told["jobs"]["done"] == 3
    assert (found["z"]["start"] == "1002") == (name == "singularity")  # 160 GiB at 100 GiB/s


def test_schedulers_in_a_sweep(files, capsys):
    policies = files / "policies.toml"
    policies.write_text('[policy.slurm]\npreset = "slurm"\n\n[policy.lent]\n' + QUOTA.replace(
        "[quota", "[policy.lent.quota"
    ))  # fmt: skip
    out = files / "sweep.parquet"
    command = ["sweep", "--jobs", files / "jobs.csv", "--fleet", "2x4", "--policies", policies]
    assert run([str(part) for part in [*command, "--out", out]]) == 0
    assert out.exists()


def test_a_key_that_no_part_has_is_refused_with_the_keys_there_are(files, capsys):
    command = ["simulate", "--jobs", files / "jobs.csv", "--fleet", "2x4", "--policy", "kai"]
    assert run([str(part) for part in [*command, "--set", "preemption.kindness=1"]]) == 1
    assert "preemption.grace_s" in capsys.readouterr().err
