"""Which processes use a device, how much memory they hold, and how busy they keep it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from collector.nvml import NO_INSTANCE, Nvml
from collector.telemetry.device import Device
from collector.telemetry.metrics import is_blank
from collector.telemetry.status import Status
from collector.telemetry.tick import DeviceTick, ProcessUse

_MIB = 2**20
# In the order in which a process that is in several lists is named.
_LISTS = (
    ("mps", "nvmlDeviceGetMPSComputeRunningProcesses"),
    ("compute", "nvmlDeviceGetComputeRunningProcesses"),
    ("graphics", "nvmlDeviceGetGraphicsRunningProcesses"),
)


def highest_pid(proc: Path = Path("/proc")) -> int:
    """The kernel's bound on pids: anything above it is a binding that misreads the driver."""
    try:
        return int((proc / "sys/kernel/pid_max").read_text())
    except (OSError, ValueError):
        return 2**22


class ProcessReader:
    """Merges the driver's lists; keeps the time of the last utilisation sample per GPU."""

    def __init__(self, nvml: Nvml, pid_max: int) -> None:
        self._nvml = nvml
        self._pid_max = pid_max
        self._last_seen_us: dict[str, int] = {}
        self.rejected = 0

    def read(self, tick: DeviceTick, handle: Any, device: Device) -> None:
        """Put the merged list into ``tick``; the list stays None if no list could be read."""
        merged: dict[tuple[int, str | None], ProcessUse] = {}
        reasons = []
        for kind, function in _LISTS:
            rows, status = self._nvml.rows(function, handle)
            reasons.append(status)
            for row in rows:
                self._merge(merged, kind, row, tick, device)
        if all(reason is not Status.OK for reason in reasons):
            tick.put("processes", None, reasons[1])
            return
        tick.processes = list(merged.values())
        if tick.mig_uuid is None and not device.mig_enabled:
            self._utilisation(tick, handle)

    def _merge(
        self,
        merged: dict[tuple[int, str | None], ProcessUse],
        kind: str,
        row: Any,
        tick: DeviceTick,
        device: Device,
    ) -> None:
        pid = int(row.pid)
        if not 1 < pid <= self._pid_max:
            self.rejected += 1
            return
        mig_uuid = tick.mig_uuid or _instance(row, device)
        known = merged.get((pid, mig_uuid))
        mem_mib = _memory(row.usedGpuMemory)
        if known is None:
            merged[pid, mig_uuid] = ProcessUse(pid, kind, mem_mib, mig_uuid=mig_uuid)
        elif known.mem_used_mib is None:
            known.mem_used_mib = mem_mib

    def _utilisation(self, tick: DeviceTick, handle: Any) -> None:
        since = self._last_seen_us.get(tick.gpu_uuid, 0)
        rows, status = self._nvml.rows("nvmlDeviceGetProcessUtilization", handle, since)
        if status is not Status.OK:
            tick.put("process_util", None, status)
            return
        newest, busy = since, defaultdict(list)
        for row in rows:
            if row.timeStamp <= since or row.smUtil > 100 or not 1 < row.pid <= self._pid_max:
                self.rejected += 1
                continue
            newest = max(newest, int(row.timeStamp))
            busy[int(row.pid)].append(row.smUtil / 100.0)
        self._last_seen_us[tick.gpu_uuid] = newest
        if since == 0 and newest > 0:
            return  # the whole buffer, of unknown age: no rate of now
        shares = {pid: sum(ratios) / len(ratios) for pid, ratios in busy.items()}
        _apply(tick, shares)


def _apply(tick: DeviceTick, shares: dict[int, float]) -> None:
    """Give each process its share; together they never exceed what the device itself reports."""
    total, device_util = sum(shares.values()), tick.values.get("util_ratio")
    most = 1.0 if device_util is None else device_util
    scale = most / total if total > most and total > 1.0 else 1.0
    for process in tick.processes or ():
        # The call succeeded and the pid is not in it: it did nothing.
        process.sm_util_ratio = shares.get(process.pid, 0.0) * scale


def _memory(raw: int | None) -> float | None:
    if raw is None or is_blank(float(raw)):  # a whole number of 64 bits equals no float
        return None
    return raw / _MIB


def _instance(row: Any, device: Device) -> str | None:
    gpu_instance = getattr(row, "gpuInstanceId", NO_INSTANCE)
    if gpu_instance in (None, NO_INSTANCE):
        return None
    return _find(device, gpu_instance, getattr(row, "computeInstanceId", NO_INSTANCE))


def _find(device: Device, gpu_instance: int, compute_instance: int) -> str | None:
    same: Iterable[Any] = (m for m in device.mig if m.gpu_instance_id == gpu_instance)
    for instance in same:
        if instance.compute_instance_id == compute_instance or compute_instance == NO_INSTANCE:
            return str(instance.mig_uuid)
    return None
