from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from collector.errors import ImportRefusedError
from collector.slurm.importer import import_live
from unstrand.service.core import Service

pytestmark = [pytest.mark.real, pytest.mark.slow]
TABLES = ("node", "job", "job_run", "allocation", "node_state", "reservation")
HELD = """
SELECT r.account, CAST(sum(a.gpus * date_diff('second', a.start_at, a.end_at)) AS BIGINT) AS held
FROM allocation a JOIN job_run r USING (cluster, run_id) WHERE a.end_at IS NOT NULL GROUP BY ALL
"""


def now():
    return datetime.now(UTC)


def hour():
    return now() - timedelta(hours=1)


@pytest.fixture
def live(slurm_lab, workload, store, monkeypatch):
    """Import the lab's Slurm into the store by the commands that an operator's machine has."""
    monkeypatch.setenv("SLURM_CONF", slurm_lab.environment["SLURM_CONF"])
    return lambda since=None: import_live(store, "lab", since, None, now())


def test_gpu_seconds_of_what_has_ended_are_those_of_sacct(
    live, store, slurm_lab, workload, gpu_seconds_by_account
):
    live(hour())
    text = slurm_lab.sacct("account,jobidraw,end,elapsedraw,alloctres")
    ended = [line for line in text.splitlines() if "|Unknown|" not in line]
    ours = {row["account"]: row["held"] for row in store.rows(HELD)}
    assert ours == gpu_seconds_by_account("\n".join(ended))


def test_asking_again_changes_no_fact_of_what_has_ended(live, store, workload):
    def facts():
        return {
            table: store.rows(f"FROM {table} ORDER BY ALL")
            for table in TABLES
            if table != "job_run"
        } | {"job_run": store.rows("FROM job_run WHERE end_at IS NOT NULL ORDER BY ALL")}

    live(hour())
    before = facts()
    live()
    assert facts() == before
    assert store.value("SELECT count(*) FROM fact_window") == 1


def test_the_split_of_a_running_job_is_the_controllers_and_outlives_the_job(
    live, store, slurm_lab, workload
):
    job = slurm_lab.submit("nlp", "-N2", "-n2", "-w", "gpu[1-2]", "--gpus=5", script="sleep 15")
    slurm_lab.wait_for(job, "RUNNING")
    live(hour())
    shown = slurm_lab.run("scontrol", "show", "job", "-d", "-o", job)
    split = "SELECT node, gpus, source FROM allocation WHERE run_id LIKE ? ORDER BY node"
    during = store.rows(split, [f"{job}.%"])
    for row in during:
        assert row["source"] == "slurm-detail"
        assert f"Nodes={row['node']} " in shown or "Nodes=gpu[1-2] " in shown
        assert f"GRES=gpu:a100:{row['gpus']}(" in shown
    assert sum(row["gpus"] for row in during) == 5
    slurm_lab.wait_until_done(job)
    live()
    assert store.rows(split, [f"{job}.%"]) == during
    open_ends = "SELECT count(*) FROM allocation WHERE run_id LIKE ? AND end_at IS NULL"
    assert store.value(open_ends, [f"{job}.%"]) == 0


def test_a_waiting_job_is_in_the_queue_with_what_it_wants_and_why_it_waits(
    live, store, slurm_lab, workload
):
    job = slurm_lab.submit("vision", "--gres=gpu:a100:4", "-N2", "-t10", "--begin=now+1hour")
    try:
        live(hour())
    finally:
        slurm_lab.run("scancel", job)
    waiting = store.rows("FROM queue_snapshot WHERE job_id = ?", [job])
    wanted = {
        "account": "vision", "reason": "BeginTime", "nodes": 2, "gpus": 8, "gpus_per_node": 4,
        "gpu_model": "a100", "limit_s": 600,
    }  # fmt: skip
    assert [{name: row[name] for name in wanted} for row in waiting] == [wanted]


def test_a_pending_job_that_starts_is_one_run(live, store, slurm_lab, workload):
    whole = slurm_lab.submit("nlp", "-w", "gpu3", "--gres=gpu:a100:8", script="sleep 12")
    slurm_lab.wait_for(whole, "RUNNING")
    job = slurm_lab.submit("vision", "-w", "gpu3", "--gres=gpu:a100:1", script="sleep 1")
    slurm_lab.wait_for(job, "PENDING")
    live(hour())
    pending = store.rows("SELECT state, start_at FROM job_run WHERE job_id = ?", [job])
    slurm_lab.wait_until_done(whole, job)
    live()
    runs = store.rows("SELECT state, gpus FROM job_run WHERE job_id = ?", [job])
    assert pending == [{"state": "PENDING", "start_at": None}]
    assert runs == [{"state": "COMPLETED", "gpus": 1}]


def test_a_reservation_is_kept_and_ends_when_it_is_deleted(live, store, slurm_lab, workload):
    slurm_lab.run(
        *("scontrol", "create", "reservation", "reservationname=demo", "starttime=now"),
        *("duration=60", "nodes=gpu3", "users=root", "flags=ignore_jobs"),
    )
    try:
        live(hour())
        kept = store.rows("SELECT node, gpus, until FROM reservation WHERE name = 'demo'")
        time.sleep(1.1)  # one that is deleted in the second of its begin has never been
    finally:
        slurm_lab.run("scontrol", "delete", "reservationname=demo")
    live()
    ended = store.rows("SELECT until FROM reservation WHERE name = 'demo'")
    assert [(row["node"], row["gpus"]) for row in kept] == [("gpu3", None)]
    assert kept[0]["until"] > now() >= ended[0]["until"]


def test_a_resumed_node_is_no_longer_drained(live, store, slurm_lab, workload):
    slurm_lab.run("scontrol", "update", "nodename=gpu3", "state=drain", "reason=check")
    live(hour())
    open_state = "SELECT state FROM node_state WHERE node = 'gpu3' AND until IS NULL"
    during = store.rows(open_state)
    slurm_lab.run("scontrol", "update", "nodename=gpu3", "state=resume")
    slurm_lab.wait_for_nodes("idle", "gpu3")
    live()
    assert during == [{"state": "drained"}]
    assert store.rows(open_state) == []


def test_limits_of_accounts_users_and_qos_are_read_as_they_are_set(
    live, store, slurm_lab, workload, configuration
):
    user = configuration.ACCOUNTS["nlp"]
    done = [
        ("modify", "account", "nlp", "set", "GrpTRES=gres/gpu=4", "GrpJobs=9"),
        ("modify", "user", user, "where", "account=nlp", "set", "GrpTRES=gres/gpu=3", "MaxJobs=7"),
        ("modify", "account", "vision", "set", "fairshare=5"),
        ("add", "account", "deep", "parent=vision"), ("add", "qos", "burst"),
        ("modify", "qos", "burst", "set", "GrpTRES=gres/gpu=10", "MaxTRESPU=gres/gpu=9",
         "Flags=OverPartQOS"),
    ]  # fmt: skip
    undone = [
        ("modify", "account", "nlp", "set", "GrpTRES=gres/gpu=-1", "GrpJobs=-1"),
        ("modify", "user", user, "where", "account=nlp", "set", "GrpTRES=gres/gpu=-1",
         "MaxJobs=-1"),
        ("modify", "account", "vision", "set", "fairshare=1"), ("delete", "account", "deep"),
        ("delete", "qos", "burst"),
    ]  # fmt: skip
    try:
        for command in done:
            slurm_lab.run("sacctmgr", "-i", *command)
        live(hour())
    finally:
        for command in undone:
            slurm_lab.run("sacctmgr", "-i", *command)
    limits = "SELECT key, value FROM scheduler_setting WHERE valid_to IS NULL AND ({}) ORDER BY key"
    owners = limits.format("regexp_matches(key, '^(account|user|qos[.]burst)[.]')")
    assert {row["key"]: row["value"] for row in store.rows(owners)} == {
        "account.nlp.GrpJobs": "9", "account.nlp.GrpTRES": "gres/gpu=4",
        "account.nlp.Parent": "root", f"user.nlp/{user}.GrpTRES": "gres/gpu=3",
        f"user.nlp/{user}.MaxJobs": "7", "account.vision.Parent": "root",
        "account.vision.Share": "5", "account.deep.Parent": "vision",
        "qos.burst.GrpTRES": "gres/gpu=10", "qos.burst.MaxTRESPU": "gres/gpu=9",
        "qos.burst.Flags": "OverPartQOS", "qos.burst.Priority": "0",
        "qos.burst.GraceTime": "00:00:00", "qos.burst.PreemptMode": "cluster",
    }  # fmt: skip
    live()
    left = store.rows(limits.format("key LIKE '%GrpTRES' OR key LIKE 'qos.burst.%'"))
    assert left == []


def test_a_slurm_that_does_not_account_for_gpus_is_refused(make_slurm_lab, store, monkeypatch):
    lab = make_slurm_lab(AccountingStorageTRES="fs/disk")
    monkeypatch.setenv("SLURM_CONF", lab.environment["SLURM_CONF"])
    lab.wait_until_done(lab.submit("nlp", "--gpus=1", script="sleep 1"))
    lab.wait_for_accounting()
    with pytest.raises(ImportRefusedError, match="AccountingStorageTRES=gres/gpu"):
        import_live(store, "lab", hour(), None, now())
    assert store.value("SELECT count(*) FROM job_run") == 0


def test_a_machine_without_slurm_is_told_what_to_do(store, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImportRefusedError, match=r"no such command.*--sacct and --nodes"):
        import_live(store, "lab", hour(), None, now())


def test_a_running_service_keeps_asking(live, store, workload):
    """`unstrand up` with a Slurm cluster set needs no import by hand."""
    service = Service.over(store, now)
    service.collector = None
    service.follow_slurm("lab", timedelta(seconds=30))
    service.schedule.start()
    deadline = time.monotonic() + 60
    while service.schedule.figures["slurm"].last_ok_at is None and time.monotonic() < deadline:
        time.sleep(0.2)
    assert service.schedule.stop(30)
    assert service.schedule.figures["slurm"].last_error is None
    assert store.value("SELECT count(*) FROM job_run WHERE cluster = 'lab'") > 0
