from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from collector.errors import ImportRefusedError
from collector.marks import Mark, record_mark
from collector.model import Node
from unstrand.marks import checkpoint, mark, restore

NOW = datetime(2026, 11, 2, tzinfo=UTC)


@pytest.fixture
def service(monkeypatch):
    """A service that takes marks, and a Slurm job's environment."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.server.taken.append((self.path, body["kind"], body["job_id"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.taken = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UNSTRAND_SERVER", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("SLURM_JOB_ID", "41")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_checkpoint_is_marked_at_its_beginning_and_its_end(service):
    with checkpoint():
        assert [kind for _, kind, _ in service.taken] == ["checkpoint-begin"]
    with restore(job="42"):
        pass
    assert service.taken[1:] == [
        ("/api/v1/marks", "checkpoint-end", "41"),
        ("/api/v1/marks", "restore-begin", "42"),
        ("/api/v1/marks", "restore-end", "42"),
    ]


def write_half_and_fail():
    with checkpoint():
        raise OSError("disk full")


def test_a_checkpoint_that_fails_gets_no_end(service):
    with pytest.raises(OSError, match="disk full"):
        write_half_and_fail()
    assert [kind for _, kind, _ in service.taken] == ["checkpoint-begin"]


@pytest.mark.parametrize("rank", ["RANK", "SLURM_PROCID"])
def test_only_the_first_rank_marks(service, monkeypatch, rank):
    monkeypatch.setenv(rank, "3")
    with checkpoint():
        pass
    assert service.taken == []
    monkeypatch.setenv(rank, "0")
    assert mark("checkpoint-end") is True


def test_a_service_that_is_away_never_stops_the_training(monkeypatch, caplog):
    monkeypatch.setenv("UNSTRAND_SERVER", "http://127.0.0.1:9")
    monkeypatch.setenv("SLURM_JOB_ID", "41")
    monkeypatch.delenv("SLURM_PROCID", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    with checkpoint():
        done = True
    assert done
    assert "was not taken" in caplog.text


def test_without_an_address_a_warning_says_what_to_set(monkeypatch, caplog):
    monkeypatch.delenv("UNSTRAND_SERVER", raising=False)
    assert mark("checkpoint-end", job="1") is False
    assert "UNSTRAND_SERVER" in caplog.text


def node(cluster):
    return Node(cluster=cluster, node="n", gpu_model="A", gpus=1, valid_from=NOW, source="test")


def test_a_mark_goes_to_the_only_cluster_there_is(store):
    with store.work() as work:
        work.append_facts([node("c")])
        record_mark(work, Mark(kind="policy-change", ts=NOW, text="backfill on"))
    [event] = store.rows("SELECT cluster, ts, kind, text FROM event")
    assert event == {"cluster": "c", "ts": NOW, "kind": "policy_change", "text": "backfill on"}


@pytest.mark.parametrize(
    ("made", "complaint"),
    [
        (Mark(kind="checkpoint", ts=NOW), "use one of checkpoint-begin"),
        (Mark(kind="checkpoint-end", ts=NOW), "of which job"),
        (Mark(kind="note", ts=NOW, text=" "), "say what"),
        (Mark(kind="note", ts=NOW, text="x" * 3000), "longer than"),
        (Mark(kind="note", ts=NOW, text="x"), "of which cluster"),
        (Mark(kind="note", ts=NOW, text="x", cluster="z"), "no cluster 'z'"),
    ],
)
def test_a_mark_that_says_too_little_is_refused(store, made, complaint):
    with store.work() as work:
        work.append_facts([node("c"), node("d")])
        with pytest.raises(ImportRefusedError, match=complaint):
            record_mark(work, made)
    assert store.value("SELECT count(*) FROM event") == 0
