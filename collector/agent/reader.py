"""The parent's side of the reader process: starts it, listens, ends it when it hangs."""

from __future__ import annotations

import json
import logging
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import IO, Any

from collector.agent import wire
from collector.agent.schedule import Intervals
from collector.telemetry.tick import Tick, decode

log = logging.getLogger(__name__)


class ReaderState(StrEnum):
    """What the reader process is doing, in the words that the pages show."""

    STARTING = "starting"
    READING = "reading"
    HUNG = "hung"  # a driver call did not return; the process was ended
    NO_DRIVER = "no_driver"  # no library, or it could not be initialised
    DRIVER_GONE = "driver_gone"  # it worked and does not any more
    BROKEN = "broken"  # the process ended in a way it never should
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """How to read: ``kind`` nvml or scenario. A call longer than its deadline hangs."""

    kind: str = "nvml"
    library: str | None = None
    path: str | None = None
    intervals: Intervals = field(default_factory=Intervals)
    call_deadline_s: float = 20.0
    init_deadline_s: float = 90.0  # without the persistence daemon the driver loads at first use
    first_retry_s: float = 1.0
    longest_retry_s: float = 60.0
    environment: Mapping[str, str] = field(default_factory=dict)


_ENDS = {
    "no_driver": ReaderState.NO_DRIVER,
    "driver_gone": ReaderState.DRIVER_GONE,
    "refused": ReaderState.NO_DRIVER,
}
# A child in an uninterruptible driver call survives SIGKILL; more than this many and the node
# needs a reboot, not another child.
_MOST_STUCK = 2
_SILENT_S = 15.0  # no beat for so long: even the beat's thread does not run


class ReaderProcess:
    """One reader at a time, started again with growing pauses. Used from one thread."""

    def __init__(self, settings: ReaderSettings) -> None:
        self._settings = settings
        self._messages: queue.SimpleQueue[tuple[int, dict[str, Any] | None]] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._generation = 0
        self._stuck: list[subprocess.Popen[bytes]] = []
        self._heard_s = 0.0
        self._next_start_s = 0.0
        self._retry_s = settings.first_retry_s
        self._inventory: list[Any] = []
        self.state = ReaderState.STARTING
        self.message = ""
        self.starts = 0
        self.hangs = 0
        self.gone_in_a_row = 0
        self.costs: dict[str, tuple[int, float, float]] = {}

    @property
    def pid(self) -> int | None:
        """The reader's process id while it lives."""
        return None if self._process is None else self._process.pid

    def wait(self, timeout_s: float) -> Tick | None:
        """The next tick, or None after ``timeout_s`` without one; keeps the reader going."""
        deadline = time.monotonic() + timeout_s
        while True:
            self._keep_alive()
            left = deadline - time.monotonic()
            try:
                generation, message = self._messages.get(timeout=max(min(left, 0.5), 0.01))
            except queue.Empty:
                if left <= 0:
                    return None
                continue
            if generation == self._generation:
                tick = self._take(message)
                if tick is not None:
                    return tick

    def stop(self) -> None:
        """End the reader; a stuck one is left to the kernel."""
        self._end_process()
        self.state = ReaderState.STOPPED

    def _keep_alive(self) -> None:
        now = time.monotonic()
        if self._process is not None:
            if now - self._heard_s > _SILENT_S:
                self._hang("the reader process fell silent", now)
            return
        self._stuck = [process for process in self._stuck if process.poll() is None]
        if now < self._next_start_s:
            return
        if len(self._stuck) >= _MOST_STUCK:
            self.message = (
                f"{len(self._stuck)} reader processes are stuck in the driver and cannot be "
                "ended: this node needs a reboot"
            )
            self._next_start_s = now + self._settings.longest_retry_s
            return
        self._start(now)

    def _start(self, now: float) -> None:
        settings = asdict(self._settings)
        del settings["environment"]
        self._generation += 1
        self.starts += 1
        self._heard_s = now
        # A new interpreter and never a fork: the driver's state does not survive one.
        process = subprocess.Popen(
            [sys.executable, "-m", "collector.agent.child", json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **self._settings.environment},
        )
        self._process = process
        assert process.stdout is not None
        threading.Thread(
            target=self._listen,
            args=(self._generation, process.stdout),
            name="unstrand-reader",
            daemon=True,
        ).start()

    def _listen(self, generation: int, out: IO[bytes]) -> None:
        with out:
            while (message := wire.read(out)) is not None:
                self._messages.put((generation, message))
        self._messages.put((generation, None))

    def _take(self, message: dict[str, Any] | None) -> Tick | None:
        now = time.monotonic()
        self._heard_s = now
        if message is None:
            self._ended(now)
        elif "beat" in message:
            self._judge(message["beat"], now)
        elif "end" in message:
            self.state = _ENDS[message["end"]]
            self.message = message["message"]
        elif "tick" in message:
            return self._tick(message)
        return None

    def _tick(self, message: dict[str, Any]) -> Tick:
        tick = decode(message["tick"])
        if message["same_inventory"]:
            tick.inventory = self._inventory
        self._inventory = tick.inventory
        self.costs = {name: tuple(cost) for name, cost in message["costs"].items()}
        self.state, self.message = ReaderState.READING, ""
        self._retry_s = self._settings.first_retry_s
        self.gone_in_a_row = 0
        return tick

    def _judge(self, beat: dict[str, Any], now: float) -> None:
        if beat["waited_s"] is None:
            return
        init = beat["call"] == "nvmlInit"
        limit = self._settings.init_deadline_s if init else self._settings.call_deadline_s
        if beat["waited_s"] > limit:
            self._hang(f"{beat['call']} has not returned for {beat['waited_s']:.0f} s", now)

    def _hang(self, message: str, now: float) -> None:
        log.error("collector hung: %s; the reader process is ended and started anew", message)
        self.hangs += 1
        self._end_process()
        self.state, self.message = ReaderState.HUNG, message
        self._later(now)

    def _ended(self, now: float) -> None:
        """The reader closed its pipe: it has ended, or is about to."""
        said_why = self.state in (ReaderState.NO_DRIVER, ReaderState.DRIVER_GONE)
        status = self._end_process()
        if self.state is ReaderState.DRIVER_GONE:
            self.gone_in_a_row += 1
        if not said_why:
            self.state = ReaderState.BROKEN
            self.message = f"the reader process ended with status {status}: see its messages above"
            log.error(self.message)
        self._later(now)

    def _later(self, now: float) -> None:
        # The driver may be loaded at any time, but a missing one is no reason to hurry.
        missing = self.state is ReaderState.NO_DRIVER
        self._next_start_s = now + (self._settings.longest_retry_s if missing else self._retry_s)
        self._retry_s = min(self._retry_s * 2, self._settings.longest_retry_s)

    def _end_process(self) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        self._generation += 1
        if process.stdin is not None:
            process.stdin.close()
        try:
            return process.wait(0.5)
        except subprocess.TimeoutExpired:
            process.kill()
        try:
            return process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._stuck.append(process)
            return None
