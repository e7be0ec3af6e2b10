"""A few worker processes that stay as long as their crew."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.workers import LOOK_EVERY_S, CancelledError, never

log = logging.getLogger(__name__)

GRACE_S = 2.0
"""So long may a piece of work that nobody wants any more go on: most end by themselves, and a new
process would take as long until it works again."""


def _told(future: Future[Any]) -> None:
    """Nobody waits for what makes ready: the work that follows meets the same fault, and says so
    to whoever asked for it."""
    error = None if future.cancelled() else future.exception()
    if error is not None:
        log.info("a worker process was not made ready: %s", error)


class Process:
    """One worker; started at its first work, and again after it has died."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._held: Any = None
        self._over = False
        self.unwanted = False  # nobody waits for what it works on

    def do(self, held: Any, work: Callable[[Any, Any], Any], item: Any) -> Any:
        """The result of ``work(held, item)``; the input is sent only when it is another one."""
        child = self._running()
        if self.unwanted:
            raise CancelledError("nobody waits for it any more")
        try:
            if held is not self._held:
                self._send(child, "hold", held)
                self._held = held
            self._send(child, "do", (work, item))
            assert child.stdout is not None
            fine, answer = pickle.load(child.stdout)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            # Killed before, while or after it wrote: no pipe, half an answer, none.
            self.stop()
            raise AdvisorError(
                "a worker process died, as they do when memory runs out: use a shorter window"
            ) from error
        if fine:
            return answer
        raise answer

    @property
    def begun(self) -> bool:
        """Whether it was ever asked for work."""
        return self._child is not None

    def holds(self, held: Any) -> bool:
        """Whether this input need not be sent again."""
        return held is self._held

    def interrupt(self) -> None:
        """End what it works on; the next work starts the process again."""
        self.unwanted = True
        child = self._child
        if child is not None:
            child.terminate()

    def kill(self) -> None:
        """End the process for good; whoever waits for its answer hears that it died."""
        self._over = True
        child = self._child
        if child is not None:
            child.terminate()
            child.wait()

    def stop(self) -> None:
        """End the process and close its pipes; nobody may be waiting for it."""
        child, self._child, self._held = self._child, None, None
        if child is not None:
            child.terminate()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._over:
            raise CancelledError("the worker processes have been ended")
        if self._child is not None and self._child.poll() is not None:
            self.stop()
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "scheduler_advisor.worker", str(os.getpid())],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )  # fmt: skip
        return self._child

    @staticmethod
    def _send(child: subprocess.Popen[bytes], kind: str, content: Any) -> None:
        assert child.stdin is not None
        pickle.dump((kind, content), child.stdin, protocol=pickle.HIGHEST_PROTOCOL)
        child.stdin.flush()


class Crew:
    """So many processes, shared by all who have work; `Workers` for one of them after another."""

    def __init__(self, count: int) -> None:
        self._all = [Process() for _ in range(count)]
        self._idle = list(self._all)
        self._busy: dict[object, Process] = {}  # by the ticket of the work
        self._one_idle = threading.Condition()
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="crew")

    def each(
        self,
        held: Any,
        work: Callable[[Any, Any], Any],
        items: Sequence[Any],
        cancelled: Callable[[], bool] = never,
    ) -> Iterator[tuple[Any, Any]]:
        """Every item once, as it is done; CancelledError as soon as ``cancelled()`` says so: what
        is being worked on is then ended after `GRACE_S`, and its process is free for others.

        No more items wait in line at a time than there are processes: whoever comes later has its
        turn after one item of each, not after all of them.
        """
        left = deque(items)
        waiting: dict[Future[Any], Any] = {}
        tickets: dict[Future[Any], object] = {}
        try:
            while left or waiting:
                if cancelled():
                    raise CancelledError("cancelled")
                while left and len(waiting) < len(self._all):
                    item = left.popleft()
                    ticket = object()
                    future = self._threads.submit(self._one, ticket, held, work, item)
                    waiting[future], tickets[future] = item, ticket
                done, _ = wait(waiting, LOOK_EVERY_S, FIRST_COMPLETED)
                for future in done:
                    yield waiting.pop(future), future.result()
        finally:
            running = [future for future in waiting if not future.cancel()]
            for future in wait(running, GRACE_S).not_done:
                self._interrupt(tickets[future])

    def ready(self, work: Callable[[Any, Any], Any]) -> None:
        """Start the processes with ``work(None, None)`` while the caller does something else;
        nothing where one has begun already. What comes afterwards waits for it."""
        if not any(process.begun for process in self._all):
            for _ in self._all:
                future = self._threads.submit(self._one, object(), None, work, None)
                future.add_done_callback(_told)

    def close(self) -> None:
        """End the processes; what they work on is lost."""
        for process in self._all:
            process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for process in self._all:
            process.stop()

    def _interrupt(self, ticket: object) -> None:
        with self._one_idle:
            process = self._busy.get(ticket)
            if process is not None:
                process.interrupt()

    def _one(self, ticket: object, held: Any, work: Callable[[Any, Any], Any], item: Any) -> Any:
        with self._one_idle:
            self._one_idle.wait_for(lambda: bool(self._idle))
            knows = [process for process in self._idle if process.holds(held)]
            process = (knows or self._idle)[0]
            self._idle.remove(process)
            self._busy[ticket], process.unwanted = process, False
        try:
            return process.do(held, work, item)
        finally:
            with self._one_idle:
                del self._busy[ticket]
                self._idle.append(process)
                self._one_idle.notify()
