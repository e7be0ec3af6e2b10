"""The reader process: the only one that calls the driver, because a call may never return.

Speaks in messages of `collector.agent.wire` on its standard output: ``tick``, ``beat`` (once a
second, from a thread of its own, with the call that is being waited for), ``end`` (why it stops).
It ends when its standard input does, so that it never outlives its parent.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from collector.agent import wire
from collector.agent.schedule import Intervals, Schedule
from collector.errors import DriverError, DriverGoneError, DriverMissingError
from collector.telemetry.source import GpuSource
from collector.telemetry.tick import Tick

BEAT_S = 1.0
_READ_AHEAD = 2**16


def _utc_now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the shell of the reader process


class Reader:
    """Reads ticks from a source and writes them to ``out`` until told to stop."""

    def __init__(self, settings: dict[str, Any], out: IO[bytes]) -> None:
        self._settings = settings
        self._out = out
        self._lock = threading.Lock()
        self._schedule = Schedule(Intervals(**settings.get("intervals", {})))
        self._doing: Callable[[], tuple[str, float] | None] = lambda: None
        self._costs: Callable[[], dict[str, Any]] = dict
        self._inventory: list[Any] | None = None
        self.stop = threading.Event()

    def run(self) -> int:
        """Open the source and read until stopped; the exit status says why it ended."""
        threading.Thread(target=self._beat, daemon=True).start()
        started = time.perf_counter()
        self._doing = lambda: ("nvmlInit", started)
        try:
            source = self._open()
            gc.freeze()  # what was loaded stays: the collector of garbage need not look at it
            while not self.stop.is_set():
                begun = time.monotonic()
                self._say(self._tick(source.read(self._schedule.due(begun))))
                self.stop.wait(self._pause(begun))
        except DriverMissingError as error:
            return self._end("no_driver", error, 3)
        except DriverGoneError as error:
            return self._end("driver_gone", error, 4)
        except DriverError as error:
            return self._end("refused", error, 5)
        source.close()
        return 0

    def _pause(self, begun: float) -> float:
        """Up to the next tick; after one that took longer than its step, a short rest."""
        step_s = self._schedule.intervals.load_s
        return max(step_s - (time.monotonic() - begun), min(step_s / 10, 1.0))

    def _open(self) -> GpuSource:
        kind = self._settings["kind"]
        if kind == "scenario":
            from collector.telemetry.scenario import ScenarioSource

            path = Path(self._settings["path"])
            self._doing = lambda: None
            return ScenarioSource(path, clock=_utc_now, monotonic=time.monotonic)
        # Loaded here and not above: a scenario needs no driver and no binding.
        from collector.nvml import Nvml
        from collector.telemetry.nvml_source import NvmlSource

        nvml = Nvml.open(self._settings.get("library"))
        self._doing = lambda: nvml.in_call
        self._costs = lambda: {
            name: (cost.calls, cost.total_s, cost.worst_s) for name, cost in nvml.costs.items()
        }
        return NvmlSource(nvml, clock=_utc_now, monotonic=time.monotonic)

    def _tick(self, tick: Tick) -> dict[str, Any]:
        same, self._inventory = tick.inventory == self._inventory, tick.inventory
        if same:
            tick.inventory = []
        return {"tick": tick.encode(), "same_inventory": same, "costs": self._costs()}

    def _beat(self) -> None:
        while True:
            call = self._doing()
            waited = None if call is None else time.perf_counter() - call[1]
            self._say({"beat": {"call": None if call is None else call[0], "waited_s": waited}})
            time.sleep(BEAT_S)

    def _end(self, why: str, error: Exception, status: int) -> int:
        self._say({"end": why, "message": str(error)})
        return status

    def _say(self, message: dict[str, Any]) -> None:
        framed = wire.frame(message)
        try:
            with self._lock:
                self._out.write(framed)
                self._out.flush()
        except (BrokenPipeError, ValueError):
            os._exit(0)  # nobody listens any more; a shutdown could hang in the driver


def _leave_with_parent() -> None:
    """End at once when the parent is gone, even from inside a call that does not return."""
    while os.read(sys.stdin.fileno(), _READ_AHEAD):
        pass
    os._exit(0)


def main() -> int:
    """Run one reader; its settings are the first argument, as JSON."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    # Whatever a library prints must not be taken for a message.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return Reader(json.loads(sys.argv[1]), out).run()


if __name__ == "__main__":
    # Threads of a driver may be stuck: leave without waiting for anything.
    status = main()
    os._exit(status)
