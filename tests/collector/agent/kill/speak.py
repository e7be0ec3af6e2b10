"""An agent on a made-up node; writes down what it has on disk, sends some batches twice.

SIGUSR1 makes its disk full, SIGUSR2 empty again.
"""

import errno
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
often = Intervals(0.05, 0.05, 0.05, 0.05, 5.0)
reader = ReaderSettings(kind="scenario", path=scenario, intervals=often)
settings = AgentSettings(
    server, Path(state), cluster="c", node="n1", listen=("127.0.0.1", 0), reader=reader
)
agent = Agent(settings, clock=lambda: datetime.now(UTC))
spool, full, waiting = agent.spool, [], []
keep, write = spool.keep, spool._write


def keep_and_note(batch):
    keep(batch)
    waiting.append(batch)
    if not spool._memory:  # everything is on disk: from here on nothing may be lost
        with Path(book).open("a") as file:
            for one in waiting:
                file.write(f"{one.boot_id} {one.sequence} {one.row_count}\n")
            file.flush()
            os.fsync(file.fileno())
        waiting.clear()


def write_or_not(name, framed):
    if full:
        raise OSError(errno.ENOSPC, "no space left")
    write(name, framed)


class Twice(httpx.HTTPTransport):
    """A network that delivers some requests twice."""

    def handle_request(self, request):
        if random.random() < 0.3:
            copy = httpx.Request(
                "POST", request.url, headers=request.headers, content=request.content
            )
            super().handle_request(copy).read()
        return super().handle_request(request)


agent.collection._deliver = keep_and_note
spool._write = write_or_not
agent.sender._client = httpx.Client(base_url=server, transport=Twice(), timeout=5.0)
agent.sender._longest_s = 0.2
signal.signal(signal.SIGUSR1, lambda *_: full.append(True))
signal.signal(signal.SIGUSR2, lambda *_: full.clear())
signal.signal(signal.SIGTERM, lambda *_: agent.stop())
sys.exit(agent.run())
