"""The one thread that writes facts: a bounded queue of batches, committed in groups.

A batch is acknowledged after its commit, never before. When the queue is full the sender waits and
is then told so: it keeps the batch and tries again. A batch that fails takes no other one down.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from collector.store import Store, Work
from unstrand.errors import BackPressureError, ServiceError

log = logging.getLogger(__name__)

QUEUE_BATCHES = 256
GROUP_BATCHES = 64


Together = Callable[[Work, Sequence[Any]], Sequence[int | Exception]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows to write: ``write`` appends several parts in a unit of work, and says of each how many
    rows it was or why it was refused; neighbours with the same ``write`` go together."""

    source: str
    write: Together
    part: Any = None
    done: Future[int] = field(default_factory=Future)


@dataclass(slots=True)
class WriterFigures:
    """What the writer has done since it started; ``commit_s`` is the time spent in commits."""

    batches: int = 0
    rows: int = 0
    failed: int = 0
    refused: int = 0
    commits: int = 0
    commit_s: float = 0.0


class Writer:
    """Takes batches from any thread and commits them from one, in the order they came."""

    def __init__(self, store: Store, *, queue_batches: int = QUEUE_BATCHES) -> None:
        self._store = store
        self._room = queue_batches
        self._queue: deque[Batch] = deque()
        self._changed = threading.Condition()
        self._open = False
        self._thread = threading.Thread(target=self._run, name="unstrand-writer", daemon=True)
        self.figures = WriterFigures()

    def start(self) -> None:
        """Begin to take batches."""
        self._open = True
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether batches are taken and written."""
        return self._open and self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """Batches taken in and not yet begun."""
        return len(self._queue)

    def submit(
        self, write: Callable[[Work], int], *, source: str, timeout_s: float = 5.0
    ) -> Future[int]:
        """Queue a batch; the future gives its row count once it is committed.

        Raises BackPressureError when there is no room within ``timeout_s``; nothing was taken then.
        """
        return self._queue_up(Batch(source, lambda work, _: [write(work)]), timeout_s)

    def submit_part(
        self, part: object, write: Together, *, source: str, timeout_s: float = 5.0
    ) -> Future[int]:
        """`submit` for one of many parts that ``write`` takes together, see `Batch`."""
        return self._queue_up(Batch(source, write, part), timeout_s)

    def _queue_up(self, batch: Batch, timeout_s: float) -> Future[int]:
        with self._changed:
            room = self._changed.wait_for(
                lambda: not self._open or len(self._queue) < self._room, timeout_s
            )
            if not self._open:
                raise BackPressureError("the service is stopping: keep the batch, send it again")
            if not room:
                self.figures.refused += 1
                raise BackPressureError(
                    f"{self._room} batches wait to be written: keep the batch of "
                    f"{batch.source} and send it again in a few seconds"
                )
            batch.done.set_running_or_notify_cancel()
            self._queue.append(batch)
            self._changed.notify_all()
        return batch.done

    def stop(self, timeout_s: float = 10.0) -> None:
        """Take nothing more, write all that was taken, and end."""
        with self._changed:
            self._open = False
            self._changed.notify_all()
        if self._thread.ident is None:
            return
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise ServiceError(
                f"{self.waiting} batches could not be written in {timeout_s:g} s; their senders "
                "have no acknowledgement and send them again after the next start"
            )

    def _run(self) -> None:
        while group := self._take():
            started = time.monotonic()
            self._write(group)
            self.figures.commit_s += time.monotonic() - started
            self.figures.commits += 1

    def _take(self) -> list[Batch]:
        """What has queued up, at most GROUP_BATCHES; empty only when stopped and drained."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._queue) or not self._open)
            group = [self._queue.popleft() for _ in range(min(GROUP_BATCHES, len(self._queue)))]
            self._changed.notify_all()
        return group

    def _write(self, group: list[Batch]) -> None:
        try:
            with self._store.work() as work, work.transaction():
                counts = [
                    count
                    for write, of in groupby(group, key=lambda batch: batch.write)
                    for count in write(work, [batch.part for batch in of])
                ]
        except Exception as error:  # noqa: BLE001 - whatever a batch raises belongs to its sender
            self._fail(group, error)
            return
        for batch, rows in zip(group, counts, strict=True):
            if isinstance(rows, Exception):
                batch.done.set_exception(rows)
                continue
            self.figures.batches += 1
            self.figures.rows += rows
            batch.done.set_result(rows)

    def _fail(self, group: list[Batch], error: Exception) -> None:
        """Nothing of the group was written: try its batches alone, to find the broken one."""
        if len(group) > 1:
            for batch in group:
                self._write([batch])
            return
        self.figures.failed += 1
        log.error("a batch of %s was not written: %s", group[0].source, error)
        group[0].done.set_exception(error)
