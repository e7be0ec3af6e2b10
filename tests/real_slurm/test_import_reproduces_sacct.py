from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from collector.slurm.importer import import_files
from collector.slurm.sacct import FIELDS

pytestmark = [pytest.mark.real, pytest.mark.slow]
NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)

HELD = """
SELECT r.account, CAST(sum(a.gpus * date_diff('second', a.start_at,
    coalesce(a.end_at, r.last_known_at))) AS BIGINT) AS gpu_seconds
FROM allocation a JOIN job_run r USING (cluster, run_id) GROUP BY ALL
"""


@pytest.fixture(scope="session")
def files(slurm_lab, workload, tmp_path_factory):
    """What an operator would write to files, as the importer's arguments."""
    folder = tmp_path_factory.mktemp("slurm-files")
    known = {name.lower() for name in slurm_lab.run("sacct", "--helpformat").split()}
    fields = [name for name in FIELDS.split(",") if name in known]
    texts = {
        "nodes": ("scontrol", "show", "node", "-d", "-o"),
        "partitions": ("scontrol", "show", "partition", "-o"),
        "topology": ("scontrol", "show", "topology"),
        "events": ("sacctmgr", "-P", "show", "event", "start=now-1hour"),
    }
    paths = {}
    for name, command in texts.items():
        paths[name] = folder / f"{name}.txt"
        paths[name].write_text(slurm_lab.run(*command, SLURM_TIME_FORMAT="%s"))
    paths["sacct"] = folder / "sacct.txt"
    text = slurm_lab.sacct(",".join(fields), "--noconvert", SLURM_TIME_FORMAT="%s")
    paths["sacct"].write_text(text)
    return paths


@pytest.fixture
def imported(store, files):
    return import_files(store, "lab", **files, now=NOW)


def test_gpu_seconds_per_account_are_those_of_sacct(
    store, imported, files, workload, gpu_seconds_by_account
):
    ours = {row["account"]: row["gpu_seconds"] for row in store.rows(HELD)}
    theirs = gpu_seconds_by_account(files["sacct"].read_text())
    assert ours == theirs
    assert all(seconds > 0 for seconds in theirs.values())
    assert set(theirs) == {"nlp", "vision"}
    assert imported.gpu_seconds == sum(theirs.values())


def test_cpu_seconds_per_account_are_what_slurm_itself_counts(store, imported, slurm_lab, workload):
    theirs: Counter[str] = Counter()
    for line in slurm_lab.sacct("account,end,cputimeraw", "-n").splitlines():
        account, end, cpu_seconds = line.split("|")
        if end != "Unknown":
            theirs[account] += int(cpu_seconds)
    ours = store.rows(
        "SELECT r.account, CAST(sum(a.cpus * date_diff('second', a.start_at, a.end_at)) AS BIGINT) "
        "AS held FROM allocation a JOIN job_run r USING (cluster, run_id) "
        "WHERE a.end_at IS NOT NULL GROUP BY ALL"
    )
    assert {row["account"]: row["held"] for row in ours} == theirs


def test_every_run_of_sacct_is_there_in_its_state(store, imported, files, workload):
    rows = [line.split("|") for line in files["sacct"].read_text().splitlines()]
    raw, state = rows[0].index("JobIDRaw"), rows[0].index("State")
    theirs = Counter((row[raw], row[state].split()[0]) for row in rows[1:])
    ours = Counter((r["job_id"], r["state"]) for r in store.rows("FROM job_run"))
    assert ours == theirs
    assert theirs[workload.preempted, "PREEMPTED"] == 1
    assert theirs[workload.preempted, "COMPLETED"] == 1
    assert theirs[workload.cancelled, "CANCELLED"] == 1
    assert theirs[workload.failed, "FAILED"] == 1
    assert theirs[workload.running, "RUNNING"] == 1


def test_the_preempted_job_has_two_runs_and_its_first_submit(store, imported, workload):
    runs = store.rows(
        "SELECT attempt, state, submit_at FROM job_run WHERE job_id = ? ORDER BY attempt",
        [workload.preempted],
    )
    assert [(run["attempt"], run["state"]) for run in runs] == [(1, "PREEMPTED"), (2, "COMPLETED")]
    first = store.value("SELECT submit_at FROM job WHERE job_id = ?", [workload.preempted])
    assert first == runs[0]["submit_at"] < runs[1]["submit_at"]


def test_the_array_is_four_jobs_of_one_array(store, imported, workload):
    tasks = store.rows(
        "SELECT array_task FROM job WHERE array_job_id = ? ORDER BY array_task", [workload.array]
    )
    assert [task["array_task"] for task in tasks] == ["0", "1", "2", "3"]


def test_models_come_from_the_node_and_no_node_holds_more_than_it_has(store, imported, workload):
    excess = store.rows(
        """
        SELECT a.node, e.ts, sum(a.gpus) AS held, max(n.gpus) AS installed
        FROM (SELECT DISTINCT start_at AS ts FROM allocation) e
        JOIN allocation a ON a.start_at <= e.ts AND (a.end_at > e.ts OR a.end_at IS NULL)
        JOIN node n ON n.node = a.node AND n.gpu_model = a.gpu_model
        GROUP BY ALL HAVING held > installed
        """
    )
    assert excess == []
    models = store.rows("SELECT DISTINCT node, gpu_model FROM allocation ORDER BY ALL")
    assert {row["node"]: row["gpu_model"] for row in models}.items() <= {
        "gpu1": "a100", "gpu2": "a100", "gpu3": "a100", "gpu4": "t4",
    }.items()  # fmt: skip


def test_the_drained_node_is_drained_once_with_its_reason(store, imported, workload):
    states = store.rows("SELECT node, state, reason, until FROM node_state WHERE node = 'gpu4'")
    assert states == [
        {"node": "gpu4", "state": "drained", "reason": "fan = loud [rack 2]", "until": None}
    ]


def test_nodes_carry_their_partitions_and_switches(store, imported, workload):
    nodes = store.rows("SELECT node, gpus, partitions, leaf, spine FROM node ORDER BY node")
    assert [tuple(node.values()) for node in nodes] == [
        ("gpu1", 8, ["low", "high"], "leaf1", "spine"),
        ("gpu2", 8, ["low", "high"], "leaf1", "spine"),
        ("gpu3", 8, ["low", "high"], "leaf2", "spine"),
        ("gpu4", 4, ["low", "high"], "leaf2", "spine"),
    ]


def test_local_times_with_their_zone_named_give_the_same_facts(
    store, imported, files, slurm_lab, workload, tmp_path
):
    fields = files["sacct"].read_text().splitlines()[0].replace("|", ",")
    local = tmp_path / "local.txt"
    local.write_text(slurm_lab.sacct(fields, "--noconvert", TZ="Asia/Kathmandu"))
    before = store.rows("SELECT run_id, start_at, end_at FROM job_run ORDER BY run_id")
    summary = import_files(
        store, "lab", **(files | {"sacct": local}), now=NOW, time_zone="Asia/Kathmandu"
    )
    assert store.rows("SELECT run_id, start_at, end_at FROM job_run ORDER BY run_id") == before
    assert any("Asia/Kathmandu" in remark for remark in summary.remarks)
