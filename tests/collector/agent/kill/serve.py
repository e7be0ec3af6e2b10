"""A service as small as it can be: takes batches into a store until it is killed."""

import sys
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from collector.agent.batch import unpack
from collector.errors import AgentConflictError, BatchRefusedError
from collector.ingest import take
from collector.store import Store


def now():
    return datetime.now(UTC)


store, lock = Store.open(sys.argv[1], clock=now), Lock()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        raw, status = self.rfile.read(int(self.headers["Content-Length"])), 200
        try:
            batch = unpack(raw)
            with lock, store.work() as work, work.transaction():
                take(work, batch, now())
        except AgentConflictError:
            status = 409
        except BatchRefusedError as error:
            print("refused", error, flush=True)
            status = 422
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


ThreadingHTTPServer.allow_reuse_address = True
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
