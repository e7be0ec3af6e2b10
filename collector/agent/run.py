"""The node agent as a process: collect, keep, send, and say how it stands."""

from __future__ import annotations

import gc
import logging
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from pathlib import Path

from collector.agent.collection import Collection
from collector.agent.doctor import dcgm_exporters
from collector.agent.figures import agent_families
from collector.agent.local import node_name
from collector.agent.picture import Identity
from collector.agent.reader import ReaderSettings, ReaderState
from collector.agent.sender import Sender, Verdict, make_client
from collector.agent.sources import NodeSources
from collector.agent.spool import MOST_BYTES, Spool
from collector.agent.web import MetricsServer
from collector.exporter.dcgm import HostnameLabel
from collector.exporter.family import Family, exposition
from collector.exporter.node import NodeExporter

log = logging.getLogger(__name__)

# After so many readers in a row that found the library gone, only a new container will help: it
# lost its device files, which happens when systemd reloads.
_GONE_FOR_GOOD = 5


class ExitStatus(IntEnum):
    """Why the agent ended; anything but 0 asks the orchestrator for a new one."""

    STOPPED = 0
    NOT_DELIVERED = 1
    LOOP_ENDED = 70
    LIBRARY_GONE = 75


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How the agent runs. ``listen``: host and port of its metrics; ``state``: spool and id."""

    server: str
    state: Path
    cluster: str = "default"
    node: str = field(default_factory=node_name)
    token: str | None = None
    verify: str | bool = True
    listen: tuple[str, int] = ("127.0.0.1", 9435)
    spool_bytes: int = MOST_BYTES
    dcgm_names: bool = False
    hostname_label: HostnameLabel = HostnameLabel.UPPER
    reader: ReaderSettings = field(default_factory=ReaderSettings)
    version: str = ""


class Agent:
    """Everything that the process holds; `run` is its life."""

    def __init__(
        self,
        settings: AgentSettings,
        *,
        clock: Callable[[], datetime],
        sources: NodeSources | None = None,
    ) -> None:
        self.spool = Spool(settings.state / "spool", most_bytes=settings.spool_bytes)
        self.sender = Sender(
            self.spool,
            make_client(settings.server, settings.token, settings.verify),
            monotonic=time.monotonic,
        )
        identity = Identity(
            settings.cluster, settings.node, agent_id(settings.state), version=settings.version
        )
        self.collection = Collection(
            identity,
            settings.reader,
            self.spool.keep,
            clock=clock,
            sources=sources,
        )
        others = dcgm_exporters() if settings.dcgm_names else []
        if others:
            log.warning(
                "%s publishes the DCGM names on this node already: ours stay off", others[0]
            )
        self._exporter = NodeExporter(
            lambda: self.collection.picture,
            settings.node,
            step_s=settings.reader.intervals.load_s,
            compatible=settings.dcgm_names and not others,
            casing=settings.hostname_label,
        )
        self._node = settings.node
        self.web = MetricsServer(*settings.listen, metrics=self.metrics, healthy=self.healthy)
        self._stop = threading.Event()

    def run(self) -> ExitStatus:
        """Work until told to stop, or until only a new process can help."""
        self.web.start()
        self.sender.start()
        self.collection.start()
        gc.freeze()  # what was loaded stays: the collector of garbage need not look at it
        status = ExitStatus.STOPPED
        while not self._stop.wait(0.2):
            if not self.collection.alive:
                log.error("the collection ended; a new agent is needed")
                status = ExitStatus.LOOP_ENDED
                break
            if self.collection.gone_in_a_row >= _GONE_FOR_GOOD:
                log.error("the driver library is gone for good in this container: ending")
                status = ExitStatus.LIBRARY_GONE
                break
        self.collection.stop()
        self.sender.stop()
        self.web.stop()
        return status

    def stop(self) -> None:
        """End soon; safe to call from a signal handler."""
        self._stop.set()

    def metrics(self, accept: str | None) -> tuple[bytes, str]:
        """The answer to a scrape."""
        return exposition(self._families(), accept)

    def healthy(self) -> tuple[bool, str]:
        """Whether GPUs are being read, and the state in words."""
        picture = self.collection.picture
        well = picture.state in (ReaderState.READING, ReaderState.STARTING)
        words = picture.message or str(picture.state)
        if self.sender.figures.message:
            words += f"; {self.spool.batches} batches wait: {self.sender.figures.message}"
        return well, words

    def _families(self) -> Iterator[Family]:
        yield from self._exporter.families()
        last = self.sender.figures.last_taken_mono_s
        age_s = None if last is None else time.monotonic() - last
        yield from agent_families(self._node, self.spool, self.sender, age_s)


def run(
    settings: AgentSettings, *, clock: Callable[[], datetime], sources: NodeSources | None = None
) -> ExitStatus:
    """Run an agent until SIGTERM or SIGINT, or until only a new process can help."""
    agent = Agent(settings, clock=clock, sources=sources)
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: agent.stop())
    return agent.run()


def once(
    settings: AgentSettings,
    *,
    clock: Callable[[], datetime],
    sources: NodeSources | None = None,
    timeout_s: float = 120.0,
) -> ExitStatus:
    """Read two ticks (the second has what needs two), deliver, and end."""
    agent = Agent(settings, clock=clock, sources=sources)
    end = time.monotonic() + timeout_s
    agent.collection.start()
    while agent.collection.picture.ticks < 2 and time.monotonic() < end:
        if agent.collection.picture.state is ReaderState.NO_DRIVER:
            break
        time.sleep(0.05)
    words = agent.healthy()[1]
    agent.collection.stop()
    while agent.sender.send_one() is Verdict.TAKEN:
        pass
    message = agent.sender.figures.message
    agent.sender.stop()
    agent.web.close()
    log.info(
        "%s; %d batches taken, %d wait", words, agent.sender.figures.taken, agent.spool.batches
    )
    if message:
        log.error("not delivered: %s", message)
    delivered = agent.spool.batches == 0 and agent.sender.figures.taken > 0
    return ExitStatus.STOPPED if delivered else ExitStatus.NOT_DELIVERED


def agent_id(state: Path) -> str:
    """The name of this agent's folder, made once: a restart is the same agent."""
    file = state / "agent_id"
    try:
        known = file.read_text(encoding="ascii").strip()
    except OSError:
        known = ""
    if known:
        return known
    fresh = uuid.uuid4().hex
    state.mkdir(parents=True, exist_ok=True)
    file.write_text(fresh + "\n", encoding="ascii")
    return fresh
