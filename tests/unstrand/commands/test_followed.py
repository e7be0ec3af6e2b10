"""Long work of a service, followed from the command line."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from scheduler_advisor.errors import AdvisorError
from unstrand.commands import followed
from unstrand.commands.followed import done_by_service

RUNNING = {"run_id": "r1", "state": "running", "stage": "replay", "done": 1, "total": 4,
           "error": None, "result": None}  # fmt: skip


class Service:
    """Answers the POST with ``first`` and each look at the run with the next of ``then``."""

    def __init__(self, first, *then):
        self.first, self.then, self.asked = first, list(then), []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self, document):
                service.asked.append(f"{self.command} {self.path}")
                body = json.dumps(document).encode()
                begun = self.command == "POST" and "run_id" in document
                self.send_response(202 if begun else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.answer(service.first)

            def do_GET(self):
                self.answer(service.then.pop(0))

            def do_DELETE(self):
                self.answer({"run_id": "r1", "state": "running"})

            def log_message(self, *_):
                """Tests are quiet."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def service(monkeypatch):
    """``service(first, *then)``; looks come at once."""
    monkeypatch.setattr(followed, "LOOK_EVERY_S", 0.0)
    made = []

    def start(first, *then):
        made.append(Service(first, *then))
        return made[-1]

    yield start
    for each in made:
        each.server.shutdown()
        each.server.server_close()


def test_an_answer_that_comes_at_once_is_the_result(service):
    there = service({"report_id": "x"})
    assert done_by_service(there.address, "advice", {}) == {"report_id": "x"}
    assert there.asked == ["POST /api/v1/advice"]


def test_a_run_is_looked_at_until_it_is_done(service):
    done = {**RUNNING, "state": "done", "result": {"report_id": "x"}}
    there = service(RUNNING, {**RUNNING, "done": 2}, done)
    assert done_by_service(there.address, "advice", {}) == {"report_id": "x"}
    assert there.asked[1:] == ["GET /api/v1/runs/r1"] * 2


@pytest.mark.parametrize(
    ("state", "error", "said"),
    [
        ("failed", "replay: node n1 has no GPUs", "node n1 has no GPUs"),
        ("cancelled", None, "it was cancelled; nothing was kept"),
    ],
)
def test_a_run_that_did_not_get_there_says_why(service, state, error, said):
    there = service(RUNNING, {**RUNNING, "state": state, "error": error})
    with pytest.raises(AdvisorError, match=said):
        done_by_service(there.address, "advice", {})


def test_ctrl_c_stops_the_run_in_the_service_too(service, monkeypatch):
    there = service(RUNNING)

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(followed.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        done_by_service(there.address, "advice", {})
    assert there.asked == ["POST /api/v1/advice", "DELETE /api/v1/runs/r1"]
