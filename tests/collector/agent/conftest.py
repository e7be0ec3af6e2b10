from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from collector.agent.batch import Batch, unpack
from collector.agent.local import LocalCollector
from collector.agent.picture import Identity
from collector.agent.reader import ReaderSettings
from collector.agent.schedule import Intervals
from collector.errors import AgentConflictError, BatchRefusedError
from collector.ingest import take
from collector.ingest.tokens import may_speak
from collector.telemetry.rows import micros

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
GPU = "GPU-00000000-0000-0000-0000-000000000000"


@pytest.fixture
def until():
    """Wait for something to be true, at most twenty seconds."""

    def wait(true, what=""):
        end = time.monotonic() + 20.0
        while not true():
            assert time.monotonic() < end, f"never came: {what or true}"
            time.sleep(0.02)

    return wait


@pytest.fixture
def quick():
    """Reader settings with a tenth of a second between ticks."""

    def settings(**changes):
        values = {
            "intervals": Intervals(0.1, 0.1, 0.1, 0.1, 5.0),
            "call_deadline_s": 1.0,
            "first_retry_s": 0.05,
            "longest_retry_s": 0.2,
        }
        return ReaderSettings(**(values | changes))

    return settings


@pytest.fixture
def a_batch():
    """A batch of one sample, with a default for everything."""

    def make(sequence=1, at=NOW, rows=1, **changes):
        times = [micros(at - timedelta(seconds=15 * (rows - 1 - i))) for i in range(rows)]
        sample = {
            "gpu_uuid": [GPU] * rows, "gpu_index": [0] * rows, "ts": times,
            "step_s": [15.0] * rows, "util_ratio": [0.5] * rows, "run_id": [None] * rows,
        }  # fmt: skip
        values = {
            "cluster": "c", "node": "n1", "agent_id": "a", "boot_id": "b", "sequence": sequence,
            "ts_us": micros(at), "tables": {"sample": sample},
        }  # fmt: skip
        return Batch(**(values | changes))

    return make


@pytest.fixture
def ingest(store):
    """Take a batch in as the service does: in one transaction."""

    def into(batch, now=NOW):
        with store.work() as work, work.transaction():
            return take(work, batch, now)

    return into


@pytest.fixture
def collector(store, quick, until):
    """A local collector that writes into the store; ended at the end."""
    started = []

    def start(settings=None, deliver=None, **more):
        def write(batch):
            with store.work() as work, work.transaction():
                take(work, batch, datetime.now(UTC))

        made = LocalCollector(
            deliver or write,
            clock=lambda: datetime.now(UTC),
            settings=settings or quick(),
            identity=Identity("c", "n1", "local"),
            **more,
        )
        made.start()
        started.append(made)
        return made

    yield start
    for made in started:
        assert made.stop(10.0)


class Service:
    """The service's side of the wire, as small as it can be: one endpoint over a store."""

    def __init__(self, store, secret):
        self.store, self.secret = store, secret
        self.answers = []  # status codes to give before doing anything
        self.forget_answer = 0  # how many batches to take and then hang up
        self.requests = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                outer.requests += 1
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                status, words = outer.take(raw, self.headers.get("Authorization", ""))
                if status is None:
                    self.close_connection = True
                    return
                body = words.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.lock = threading.Lock()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, raw, authorization):
        if self.answers:
            return self.answers.pop(0), "asked to"
        try:
            batch = unpack(raw)
            token = authorization.removeprefix("Bearer ")
            if self.secret and not may_speak(self.secret, batch.node, token):
                return 401, "the token is not that of the node"
            with self.lock, self.store.work() as work, work.transaction():
                rows = take(work, batch, datetime.now(UTC))
        except AgentConflictError as error:
            return 409, str(error)
        except BatchRefusedError as error:
            return 422, str(error)
        if self.forget_answer:
            self.forget_answer -= 1
            return None, ""
        return 200, str(rows)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def service(store):
    made = Service(store, b"")
    yield made
    made.stop()
