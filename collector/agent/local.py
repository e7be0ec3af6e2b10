"""The agent inside the service, for the GPUs of its own machine."""

from __future__ import annotations

import platform
from collections import deque
from collections.abc import Callable
from datetime import datetime

from collector.agent.batch import Batch
from collector.agent.collection import Collection
from collector.agent.picture import Identity, Picture
from collector.agent.reader import ReaderSettings, ReaderState
from collector.agent.sources import NodeSources

# Batches kept while the writer has no room: ten minutes at the usual fifteen seconds.
_MOST_KEPT = 40


class LocalCollector:
    """Collects from this machine and hands batches to ``deliver``, in a thread of its own.

    ``deliver`` may raise when it has no room; the batch is kept, up to forty of them, and offered
    again before the next one. The driver is only ever called in a child process, so a call that
    never returns costs the service nothing.
    """

    def __init__(
        self,
        deliver: Callable[[Batch], None],
        *,
        clock: Callable[[], datetime],
        identity: Identity | None = None,
        settings: ReaderSettings | None = None,
        sources: NodeSources | None = None,
    ) -> None:
        self._sink = deliver
        self._kept: deque[Batch] = deque()
        self.dropped = 0
        self._collection = Collection(
            identity or Identity("local", node_name(), agent_id="local"),
            settings or ReaderSettings(),
            self._offer,
            clock=clock,
            sources=sources,
        )

    def start(self) -> None:
        """Begin to collect."""
        self._collection.start()

    def stop(self, timeout_s: float = 5.0) -> bool:
        """End the reader process and the thread; whether both ended in time."""
        return self._collection.stop(timeout_s)

    @property
    def picture(self) -> Picture:
        """The newest that is known, for pages and the exporter."""
        return self._collection.picture

    @property
    def identity(self) -> Identity:
        """The cluster and node that this collector speaks for."""
        return self._collection.identity

    @property
    def alive(self) -> bool:
        """Whether the loop runs."""
        return self._collection.alive

    def words(self) -> str:
        """What it does, in one sentence for people."""
        picture = self.picture
        if picture.state is ReaderState.READING and picture.tick is not None:
            return f"reading {len(picture.tick.inventory)} GPUs of {self.identity.node}"
        if picture.state is ReaderState.HUNG:
            return f"collector hung: {picture.message}"
        return picture.message or str(picture.state)

    def _offer(self, batch: Batch) -> None:
        self._kept.append(batch)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popleft()
            self.dropped += 1
        while self._kept:
            self._sink(self._kept[0])
            self._kept.popleft()


def node_name() -> str:
    """This machine's name as schedulers use it: without the domain."""
    return platform.node().partition(".")[0] or "localhost"
