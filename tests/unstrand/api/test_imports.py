"""Files of other systems over the API: taken in whole, or refused with the line."""

from __future__ import annotations

import pytest

from collector.backup import restore
from collector.store import Store

SACCT = """\
jobid|account|user|partition|submit|eligible|start|end|state|alloctres|nnodes|nodelist
1|nlp|amara|a100|1793491200|1793491200|1793491260|1793494860|COMPLETED|cpu=16,gres/gpu=2,mem=65536M,node=1|1|gn01
"""
NODES = (
    "NodeName=gn01 CPUTot=128 CPUEfctv=128 Gres=gpu:a100:8 RealMemory=1048576 State=IDLE "
    "Partitions=a100 CfgTRES=cpu=128,mem=1048576M,gres/gpu=8\n"
)
EVENTS = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
EVENTS += "c|gn01|1793491300|1793491400|DRAIN|fan|root\n"
TRACE = "job_id,submit,run,gpus,start\n1,0,3600,2,60\n"


@pytest.fixture
def store(tmp_path, site):
    with Store.open(tmp_path / "s.duckdb", clock=lambda: site.UNTIL) as opened:
        yield opened


@pytest.fixture
def imports(client, store):
    """``imports("slurm", {"sacct": text, ...}, cluster="c")`` sends a form."""
    api = client(store)

    def send(kind, files, **fields):
        sent = {name: (f"{name}.txt", text) for name, text in files.items()}
        return api.post(f"/import/{kind}", files=sent, data=fields)

    return send


def counts(store):
    tables = ("job_run", "node", "node_state", "import_log")
    return {table: store.value(f"SELECT count(*) FROM {table}") for table in tables}


def test_files_of_slurm_are_taken_in_and_the_answer_says_what(imports, store):
    files = {"sacct": SACCT, "nodes": NODES, "events": EVENTS}
    answer = imports("slurm", files, cluster="c", until="2026-11-02")
    assert answer.status_code == 200, answer.text
    assert answer.json()["gpu_seconds"] == 2 * 3600
    assert answer.json()["until"] == "2026-11-02T00:00:00Z"
    assert "facts known from 2026-11-01 00:00:00" in "\n".join(answer.json()["lines"])
    assert counts(store) == {"job_run": 1, "node": 1, "node_state": 1, "import_log": 1}


def test_a_broken_file_is_refused_by_the_name_it_was_sent_with_and_nothing_is_kept(imports, store):
    files = {"sacct": SACCT.replace("1793494860", "yesterday"), "nodes": NODES}
    answer = imports("slurm", files, cluster="c")
    assert answer.status_code == 422
    assert answer.json()["error"]["what"].startswith("sacct.txt, line 2")
    assert "unstrand-import-" not in answer.text
    assert counts(store) == {"job_run": 0, "node": 0, "node_state": 0, "import_log": 0}


@pytest.mark.parametrize(
    ("files", "fields", "status", "where"),
    [
        ({"nodes": NODES}, {"cluster": "c"}, 400, "body parameter sacct"),
        ({"sacct": SACCT, "nodes": NODES}, {}, 400, "body parameter cluster"),
        ({"sacct": SACCT, "nodes": NODES}, {"cluster": "c", "since": "soon"}, 400, "since"),
        ({"sacct": SACCT, "nodes": NODES}, {"cluster": "c", "time_zone": "Mars"}, 422, "import"),
        ({"sacct": "", "nodes": NODES}, {"cluster": "c"}, 422, "import"),
    ],
)
def test_what_is_missing_or_wrong_is_named(imports, store, files, fields, status, where):
    answer = imports("slurm", files, **fields)
    assert (answer.status_code, counts(store)["import_log"]) == (status, 0)
    assert where in answer.json()["error"]["where"]


def test_a_trace_is_taken_in(imports):
    answer = imports("trace", {"file": TRACE}, format="jobs", cluster="t", shape="1x8")
    assert answer.status_code == 200, answer.text
    assert answer.json()["held_gpu_hours"] == 2.0


@pytest.mark.parametrize("policy", ["../../etc/passwd", "/etc/x.toml"])
def test_a_policy_is_a_name_and_never_a_path_on_our_machine(imports, policy):
    fields = {"format": "jobs", "cluster": "t", "shape": "1x8", "policy": policy}
    answer = imports("trace", {"file": TRACE}, **fields)
    assert answer.status_code == 400
    assert "body parameter policy" in answer.json()["error"]["where"]


def test_real_facts_are_refused_by_a_store_that_holds_the_demo(imports, store):
    with store.work() as work:
        work.execute("INSERT INTO store_info VALUES ('kind', 'demo')")
    answer = imports("slurm", {"sacct": SACCT, "nodes": NODES}, cluster="c")
    assert (answer.status_code, counts(store)["job_run"]) == (409, 0)


def test_a_host_without_slurm_says_so(client, store, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    answer = client(store).post("/import/slurm/live", json={"cluster": "c"})
    assert answer.status_code == 422
    assert "scontrol" in answer.json()["error"]["what"]


def test_a_backup_over_the_api_is_the_store_and_leaves_nothing_beside_it(
    client, imports, store, tmp_path, site
):
    imports("slurm", {"sacct": SACCT, "nodes": NODES}, cluster="c")
    answer = client(store).get("/backup")
    assert answer.status_code == 200
    saved, copy = tmp_path / "saved.duckdb", tmp_path / "copy.duckdb"
    saved.write_bytes(answer.content)
    restore(saved, copy, replace=False, clock=lambda: site.UNTIL)
    with Store.open(copy, clock=lambda: site.UNTIL) as other:
        assert counts(other) == counts(store)
    assert list(tmp_path.glob(".backup-*")) == []
