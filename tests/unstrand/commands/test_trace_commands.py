"""`unstrand pack`, `simulate` and `import trace`: from the command line to the files."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest

from collector.store import Store
from unstrand.__main__ import run


@pytest.fixture
def jobs_file(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        "job_id,submit,run,gpus,limit\n"
        "wide,0,100,8,100\nhead,10,100,8,100\nsmall,20,50,1,50\nempty,30,0,1,\nhuge,40,5,99,5\n"
    )
    return path


def rows_of(path):
    with path.open(newline="") as text:
        return list(csv.DictReader(text))


def test_simulate_writes_what_became_of_each_job_and_the_figures(tmp_path, jobs_file, capsys):
    out, summary = tmp_path / "out.csv", tmp_path / "summary.json"
    arguments = ["simulate", "--jobs", jobs_file, "--fleet", "1x8", "--policy", "fifo"]
    assert run([*map(str, arguments), "--out", str(out), "--summary", str(summary)]) == 0
    rows = {row["job_id"]: row for row in rows_of(out)}
    assert list(rows) == ["wide", "head", "small", "huge"]
    assert list(rows["head"].values()) == [
        "head", "10", "100", "200", "90", "8", "n0", "done", "1", "0", "0", "0",
    ]  # fmt: skip
    assert [rows["huge"][name] for name in ("start", "end", "state")] == ["", "", "unplaceable"]
    told = json.loads(summary.read_text())
    assert told["jobs"] == {
        "read": 4, "skipped": {"run time of 0 or less": 1}, "done": 3, "pending": 0,
        "unplaceable": 1,
    }  # fmt: skip
    assert told["wait_s"] == {"mean": 90.0, "p50": 90.0, "p95": 171.0, "max": 180.0}
    assert told["makespan_s"] == 250
    assert told["occupancy_ratio"] == pytest.approx((800 + 800 + 50) / (8 * 250))
    assert {"jobs_per_second", "read_s", "compile_s", "workload_hash"} <= told.keys()
    hours = told["gpu_hours_by_class"]
    assert sum(hours.values()) == pytest.approx(8 * 250 / 3600)
    assert hours["free"] == pytest.approx(7 * 50 / 3600, rel=0.05)
    assert [row["name"] for row in told["by_size_class"]] == ["1", "5-8"]
    assert len(told["series"]["at_s"]) == told["samples"] == 200
    assert "skipped 1: run time of 0 or less" in capsys.readouterr().out


def test_a_set_option_and_a_policy_file_change_the_replay(tmp_path, jobs_file):
    policy = tmp_path / "easy.toml"
    policy.write_text('[backfill]\nkind = "greedy"\n')
    out = tmp_path / "out.csv"
    common = ["simulate", "--jobs", str(jobs_file), "--fleet", "2x8", "--out", str(out)]
    starts = {}
    for name, options in {
        "none": ["--policy", "fifo"],
        "set": ["--policy", "fifo", "--set", "placement=worst-fit"],
        "file": ["--policy", str(policy)],
    }.items():
        assert run([*common, *options]) == 0
        starts[name] = [row["nodes"] for row in rows_of(out)][:2]
    assert starts["none"] == starts["file"] == starts["set"] == ["n0", "n1"]
    assert run([*common, "--policy", "fifo", "--set", "backfill=easy"]) == 0


@pytest.mark.parametrize(
    ("changed", "code", "message"),
    [
        ({"--policy": "fairest"}, 1, "no preset fairest"),
        ({"--policy": "none.toml"}, 1, "cannot read the policy none.toml"),
        ({"--fleet": "17by8"}, 1, "no fleet '17by8'"),
        ({"--jobs": "none.swf"}, 1, "there is no such file"),
        ({"--set": "depth"}, 2, "write KEY=VALUE"),
        ({"--set": "colour=red"}, 1, "no key colour"),
        ({"--out": "/nowhere/out.csv"}, 1, "cannot write /nowhere/"),
        ({"--format": "pbs"}, 1, "no trace format 'pbs'"),
    ],
)
def test_what_simulate_refuses_it_names(jobs_file, capsys, changed, code, message):
    options = {"--jobs": str(jobs_file), "--fleet": "1x8", "--policy": "fifo"} | changed
    assert run(["simulate", *[part for pair in options.items() for part in pair]]) == code
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_limit_can_be_enforced(tmp_path):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job_id,submit,run,gpus,limit\na,0,100,1,60\n")
    out = tmp_path / "out.csv"
    common = ["simulate", "--jobs", str(jobs), "--fleet", "1x1", "--policy", "fifo"]
    for overrun, end in (("raise", "100"), ("kill", "60")):
        assert run([*common, "--overrun", overrun, "--out", str(out)]) == 0
        assert rows_of(out)[0]["end"] == end


@pytest.fixture
def pods_and_nodes(tmp_path):
    pods, nodes = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    header = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
        "creation_time,deletion_time,scheduled_time\n"
    )
    pods.write_text(
        header
        + "".join(f"p{i},1000,10,1,{500 if i % 2 else 1000},,LS,Running,0,9,0\n" for i in range(8))
    )
    nodes.write_text(
        "sn,cpu_milli,memory_mib,gpu,model\n" + "n1,64000,999,4,T4\nn2,64000,999,4,T4\n"
    )
    return ["--pods", str(pods), "--nodes", str(nodes)]


def test_pack_writes_curve_figures_and_placements(tmp_path, pods_and_nodes):
    out, places = tmp_path / "out.json", tmp_path / "places.csv"
    files = ["--out", str(out), "--placements", str(places)]
    assert (
        run(["pack", *pods_and_nodes, "--policy", "fgd", "--inflate", "1.3", "--seed", "5", *files])
        == 0
    )
    told = json.loads(out.read_text())
    assert told["allocated_ratio"] == 1.0
    assert told["placed"] + told["failed"] == told["pods"] == len(rows_of(places))
    assert told["curve"][0] == {
        "demand_ratio": 0.0,
        "allocated_ratio": 0.0,
        "fragmentation_milli_gpu": told["fragmentation_empty_milli_gpu"],
    }
    assert 1.2 < told["curve"][-1]["demand_ratio"] <= 1.3
    assert (told["policy"], told["ties"], told["seed"]) == ("fgd", "name", 5)
    assert {"pods_per_second", "policy_hash", "workload_hash", "cluster_hash"} <= told.keys()
    assert {row["node"] for row in rows_of(places)} == {"n1", "n2", ""}


def test_pack_takes_an_order_of_pods_and_an_order_of_nodes(tmp_path, pods_and_nodes):
    order, ties, places = tmp_path / "order.txt", tmp_path / "ties.txt", tmp_path / "places.csv"
    order.write_text("p0\np0\np1\n")
    ties.write_text("n2\nn1\n")
    options = ["--order", str(order), "--ties", str(ties), "--policy", "best-fit"]
    files = ["--out", str(tmp_path / "out.json"), "--placements", str(places)]
    assert run(["pack", *pods_and_nodes, *options, *files]) == 0
    assert [(row["pod"], row["node"], row["gpus"]) for row in rows_of(places)] == [
        ("p0", "n2", "0"), ("p0", "n2", "1"), ("p1", "n2", "2"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--policy", "fdg"], 1, "no packing policy 'fdg'"),
        (["--policy", "fgd", "--ties", "nmae"], 1, "no tie rule 'nmae'"),
        (["--policy", "fgd", "--inflate", "lots"], 2, "lots is no ratio"),
        (["--policy", "fgd", "--inflate", "1.3", "--order", "x"], 2, "give one of them"),
        (["--policy", "fgd", "--order", "none.csv"], 1, "there is no such file"),
    ],
)
def test_what_pack_refuses_it_names(tmp_path, pods_and_nodes, capsys, options, code, message):
    out = tmp_path / "out.json"
    assert run(["pack", *pods_and_nodes, *options, "--out", str(out)]) == code
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not out.exists()


def test_import_trace_fills_a_store_and_says_so(tmp_path, pods_and_nodes, capsys):
    db = tmp_path / "t.duckdb"
    pods, nodes = pods_and_nodes[1], pods_and_nodes[3]
    common = ["import", "trace", pods, "--format", "openb", "--db", str(db)]
    assert (
        run([*common, "--cluster", "c", "--nodes", nodes, "--origin", "2026-01-01", "--json"]) == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert (told["nodes"], told["gpus"], told["rows"][0]["kept"]) == (2, 8, 8)
    assert told["held_gpu_hours"] == pytest.approx(6 * 9 / 3600)
    assert run([*common, "--cluster", "c", "--nodes", nodes, "--origin", "2026-01-01"]) == 1
    assert "in cluster c already" in capsys.readouterr().err
    with Store.open(db, clock=lambda: datetime(2026, 11, 2, tzinfo=UTC)) as store:
        assert store.value("SELECT count(*) FROM allocation") == 8


def test_import_trace_replays_a_trace_without_starts_under_a_named_policy(tmp_path, capsys):
    trace = tmp_path / "itp.csv"
    trace.write_text("job_id,submission_time,duration,num_gpu\na,0,60,12\nb,1,30,8\n")
    db = tmp_path / "t.duckdb"
    common = ["import", "trace", str(trace), "--format", "itp", "--cluster", "c", "--db", str(db)]
    assert run([*common, "--shape", "2x8"]) == 1
    assert "--policy" in capsys.readouterr().err
    assert run([*common, "--shape", "2x8", "--policy", "fifo"]) == 0
    assert "fidelity not gradable" in capsys.readouterr().out
    with Store.open(db, clock=lambda: datetime(2026, 11, 2, tzinfo=UTC)) as store:
        held = store.rows("SELECT run_id, node, gpus, source FROM allocation ORDER BY run_id, node")
        assert [tuple(row.values()) for row in held] == [
            ("a.1", "n0", 8, "trace:itp:simulated"),
            ("a.1", "n1", 4, "trace:itp:simulated"),
            ("b.1", "n0", 8, "trace:itp:simulated"),
        ]


@pytest.fixture
def filled_store(tmp_path, capsys):
    """A store with one imported cluster of two nodes: what waited in the past would not need to."""
    log = tmp_path / "log.swf"
    line = "{} {} {} {} {} -1 -1 {} {} -1 1 7 3 -1 2 -1 -1 -1\n"
    jobs = [(1, 0, 50, 100, 8), (2, 10, 90, 100, 8), (3, 20, 200, 50, 4)]
    log.write_text("".join(line.format(n, s, w, r, g, g, r) for n, s, w, r, g in jobs))
    db = tmp_path / "s.duckdb"
    arguments = ["import", "trace", str(log), "--format", "swf", "--shape", "2x8", "--db", str(db)]
    assert run([*arguments, "--cluster", "c"]) == 0
    capsys.readouterr()
    return db


def test_the_stores_own_last_weeks_can_be_replayed_on_its_own_nodes(tmp_path, filled_store):
    out, summary = tmp_path / "out.csv", tmp_path / "summary.json"
    files = ["--out", str(out), "--summary", str(summary), "--db", str(filled_store)]
    assert run(["simulate", "--window", "1w", "--policy", "fifo", *files]) == 0
    assert [row["wait"] for row in rows_of(out)] == ["0", "0", "80"]
    told = json.loads(summary.read_text())
    assert told["fleet"] == "store:c"
    assert told["observed_wait_s"]["mean"] == pytest.approx((50 + 90 + 200) / 3)
    assert run(["simulate", "--window", "1w", "--policy", "fifo", "--fleet", "3x8", *files]) == 0
    assert [row["wait"] for row in rows_of(out)] == ["0", "0", "0"]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--window", "1w", "--cluster", "other"], 1, "no facts of cluster other"),
        (["--window", "soon"], 1, "'soon' is no duration"),
        ([], 2, "--jobs FILE or --window"),
        (["--jobs", "x.swf"], 2, "needs --fleet"),
    ],
)
def test_what_a_replay_of_the_store_needs_is_said(filled_store, capsys, options, code, message):
    assert run(["simulate", "--policy", "fifo", "--db", str(filled_store), *options]) == code
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.fixture
def policies(tmp_path):
    path = tmp_path / "policies.toml"
    path.write_text('seeds = [1, 2]\n[policy.fifo]\n[policy.easy]\npreset = "easy"\n')
    return str(path)


def test_sweep_writes_a_row_for_each_policy_and_seed(tmp_path, jobs_file, policies, capsys):
    out = tmp_path / "out.parquet"
    arguments = ["sweep", "--jobs", jobs_file, "--fleet", "1x8", "--policies", policies]
    assert run([*map(str, arguments), "--out", str(out)]) == 0
    rows = pq.read_table(out).to_pylist()
    assert [(row["policy"], row["seed"]) for row in rows] == [
        ("fifo", 1), ("fifo", 2), ("easy", 1), ("easy", 2),
    ]  # fmt: skip
    assert {row["wait_s_mean"] for row in rows if row["policy"] == "fifo"} == {90.0}
    assert not any(row["cached"] for row in rows)
    assert "4 replays, 0 of them known already" in capsys.readouterr().out


def test_a_sweep_over_the_store_is_kept_there_and_not_run_again(
    tmp_path, filled_store, policies, capsys
):
    out = tmp_path / "out.parquet"
    arguments = ["sweep", "--window", "1w", "--policies", policies, "--out", str(out)]
    for known in (0, 4):
        assert run([*arguments, "--db", str(filled_store)]) == 0
        assert f"4 replays, {known} of them known already" in capsys.readouterr().out
    assert all(row["cached"] for row in pq.read_table(out).to_pylist())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"--policies": "none.toml"}, "cannot read the policies none.toml"),
        ({"--executor": "ray"}, "no executor 'ray'"),
        ({"--out": "/nowhere/out.parquet"}, "cannot write /nowhere/"),
    ],
)
def test_what_sweep_refuses_it_names(tmp_path, jobs_file, policies, capsys, changed, message):
    options = {
        "--jobs": str(jobs_file),
        "--fleet": "1x8",
        "--policies": policies,
        "--out": str(tmp_path / "out.parquet"),
    } | changed
    assert run(["sweep", *[part for pair in options.items() for part in pair]]) == 1
    assert message in capsys.readouterr().err
