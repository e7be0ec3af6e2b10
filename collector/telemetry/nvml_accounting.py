"""Processes that came and went between two ticks, from the driver's accounting buffer.

Only where the site has switched accounting on (root, `nvidia-smi -am 1`); not with MIG.
"""

from __future__ import annotations

from typing import Any

from collector.nvml import Nvml
from collector.telemetry.metrics import is_blank
from collector.telemetry.status import Status
from collector.telemetry.tick import ENDED, DeviceTick, ProcessUse

_MIB = 2**20
_ASK_EVERY = 4


class AccountingReader:
    """Adds each ended process once; (pid, start) names it, because pids are reused."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._told: dict[str, set[tuple[int, int]]] = {}
        self._asked: dict[str, tuple[int, bool]] = {}

    def read(self, tick: DeviceTick, handle: Any) -> None:
        """Add processes that ended since the last tick, with their peak memory and mean use."""
        if tick.processes is None or not self._is_on(tick.gpu_uuid, handle):
            return
        pids, status = self._nvml.rows("nvmlDeviceGetAccountingPids", handle)
        if status is not Status.OK:
            return
        first = tick.gpu_uuid not in self._told
        told, now = self._told.get(tick.gpu_uuid, set()), set[tuple[int, int]]()
        for pid in pids:
            stats, status = self._nvml.call("nvmlDeviceGetAccountingStats", handle, int(pid))
            # The time is zero while it runs.
            if status is not Status.OK or stats.isRunning or not stats.time:
                continue
            key = (int(pid), int(stats.startTime))
            now.add(key)
            if key not in told and not first:
                tick.processes.append(_use(int(pid), stats))
        self._told[tick.gpu_uuid] = now

    def _is_on(self, gpu_uuid: str, handle: Any) -> bool:
        """Whether the site has it on; it is switched rarely, so asked at every fourth tick."""
        asked, on = self._asked.get(gpu_uuid, (0, False))
        if asked % _ASK_EVERY == 0:
            mode, status = self._nvml.call("nvmlDeviceGetAccountingMode", handle)
            on = status is Status.OK and bool(mode)
        self._asked[gpu_uuid] = (asked + 1, on)
        return on


def _use(pid: int, stats: Any) -> ProcessUse:
    memory, busy = stats.maxMemoryUsage, int(stats.gpuUtilization)
    return ProcessUse(
        pid,
        ENDED,
        None if memory is None or is_blank(memory) else memory / _MIB,
        busy / 100.0 if 0 <= busy <= 100 else None,
    )
