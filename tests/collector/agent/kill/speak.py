"""An agent on a made-up node; writes down what it has on disk, sends some batches twice."""

import os
import random
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx

from collector.agent.reader import ReaderSettings
from collector.agent.run import Agent, AgentSettings
from collector.agent.schedule import Intervals

server, state, scenario, book = sys.argv[1:5]
often = Intervals(0.2, 0.2, 0.2, 0.2, 5.0)
reader = ReaderSettings(kind="scenario", path=scenario, intervals=often)
settings = AgentSettings(
    server, Path(state), cluster="c", node="n1", listen=("127.0.0.1", 0), reader=reader
)
agent = Agent(settings, clock=lambda: datetime.now(UTC))
spool, waiting, keep = agent.spool, [], agent.spool.keep


def write_down(name, line):
    with Path(book, name).open("a") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def keep_and_note(batch):
    errors = spool.figures.disk_errors
    keep(batch)
    if spool.figures.disk_errors > errors:
        write_down("full", f"{batch.boot_id} {batch.sequence}")
    waiting.append(batch)
    if not spool._memory:  # everything is on disk: from here on nothing may be lost
        for one in waiting:
            write_down("kept", f"{one.boot_id} {one.sequence} {one.row_count}")
        waiting.clear()


class Twice(httpx.HTTPTransport):
    """A network that delivers some requests twice."""

    def handle_request(self, request):
        if random.random() < 0.3:
            copy = httpx.Request(
                "POST", request.url, headers=request.headers, content=request.content
            )
            if super().handle_request(copy).status_code == 200:
                write_down("twice", "")
        return super().handle_request(request)


agent.collection._deliver = keep_and_note
agent.sender._client = httpx.Client(base_url=server, transport=Twice(), timeout=5.0)
agent.sender._longest_s = 0.2
signal.signal(signal.SIGTERM, lambda *_: agent.stop())
sys.exit(agent.run())
