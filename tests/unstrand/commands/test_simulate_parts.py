"""Every part that changes running jobs is reached by a policy file, from `simulate` and `sweep`."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from unstrand.__main__ import run

HEADER = (
    "job_id,submit,run,gpus,tasks,gpus_per_task,gpu_milli,min_tasks,max_tasks,service,preemptible\n"
)
SMALL = ("a,0,3600,1,1,,100,,,,0", "b,0,3600,1,1,,100,,,,0")
STRETCHY = ("e,0,7200,2,2,1,,2,8,,0", "f,700,10,1,1,1,,,,,0")
REPLICAS = ("w,0,3600,8,8,1,,,,,0", "s,60,600,1,1,1,,,,1,0")
APART = (
    "p,0,36000,2,1,2,,,,,1", "q,0,60,2,1,2,,,,,0", "r,0,36000,2,1,2,,,,,1",
    "s,0,60,2,1,2,,,,,0", "big,100,600,4,1,4,,,,,0",
)  # fmt: skip
FLEETS = {
    1: "node,gpus,gpu_model\nn1,8,H100\n",
    2: "node,gpus,gpu_model\nn1,4,H100\nn2,4,H100\n",
}
PARTS = {
    "mig": (SMALL, 1, '[sharing]\nkind = "mig"\n', "sharing = mig"),
    "mps": (SMALL, 1, '[sharing]\nkind = "mps"\n', "sharing = mps"),
    "elastic": (STRETCHY, 1, '[elastic]\nkind = "resize"\n', "elastic = resize"),
    "services": (REPLICAS, 1, 'order = "fifo"\n', "services"),
    "moves": (APART, 2, 'preset = "kai"\n', "defrag = pending"),
}


@pytest.fixture
def command(tmp_path):
    def words(name, *more):
        rows, fleet, policy, _ = PARTS[name]
        (tmp_path / "jobs.csv").write_text(HEADER + "".join(f"{row}\n" for row in rows))
        (tmp_path / "hosts.csv").write_text(FLEETS[fleet])
        (tmp_path / "policy.toml").write_text(policy)
        lines = policy.replace("[", "[policy.it.")
        (tmp_path / "policies.toml").write_text(f"[policy.it]\n{lines}")
        source = ["--jobs", tmp_path / "jobs.csv", "--fleet", tmp_path / "hosts.csv"]
        return [str(part) for part in (*more[:1], *source, *more[1:])]

    return words


@pytest.mark.parametrize("name", PARTS)
def test_a_policy_file_reaches_the_part_and_the_driver_is_told(command, tmp_path, capsys, name):
    summary = tmp_path / "summary.json"
    asked = command(name, "simulate", "--policy", tmp_path / "policy.toml", "--summary", summary)
    assert run(asked) == 0
    told = json.loads(summary.read_text())
    assert (told["driver"], told["driver_because"]) == ("plain", [PARTS[name][3]])
    assert f"replayed by the plain driver ({PARTS[name][3]})" in capsys.readouterr().out
    shown = {
        "mig": told["paused_gpu_hours"] > 0,  # slices are cut first
        "mps": told["held_gpu_hours"] == pytest.approx(0.2, rel=0.05),
        "elastic": told["resizes"] > 0,
        "services": told["short_replica_minutes"] == 10,
        "moves": told["migrations"] == 1,
    }
    assert shown[name]


@pytest.mark.parametrize("name", ["mig", "moves"])
def test_a_sweep_reaches_it_too(command, tmp_path, capsys, name):
    out = tmp_path / "sweep.parquet"
    asked = command(name, "sweep", "--policies", tmp_path / "policies.toml", "--out", out)
    assert run(asked) == 0
    assert "it: replayed by the plain driver" in capsys.readouterr().out
    [row] = pq.read_table(out).to_pylist()
    assert row["driver"] == "plain"
    assert row["migrations"] == (1 if name == "moves" else 0)
