"""Utilisation, memory, power, energy, temperature and clocks of one device through NVML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collector.nvml import Field, Nvml
from collector.telemetry.metrics import judge
from collector.telemetry.status import Status
from collector.telemetry.tick import DeviceTick

_MIB = 1.0 / 2**20
_PERCENT = 0.01
_ASK_AGAIN = 40  # ticks until a GPU without a sample buffer is asked again: ten minutes
_GPU_UTIL_SAMPLES = 1  # NVML_GPU_UTILIZATION_SAMPLES
_SCOPE_GPU, _SCOPE_MODULE = 0, 1
# (metric, field id, scope): NVML_FI_DEV_POWER_AVERAGE 185, _INSTANT 186.
POWER_FIELDS = (
    ("power_average_mw", 185, _SCOPE_GPU),
    ("power_instant_mw", 186, _SCOPE_GPU),
    ("power_module_mw", 186, _SCOPE_MODULE),
)
# (metric, function, arguments): one number each. Clock 1 = SM; sensor 0 = GPU.
_SINGLE: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("power_mw", "nvmlDeviceGetPowerUsage", ()),
    ("energy_total_mj", "nvmlDeviceGetTotalEnergyConsumption", ()),
    ("temperature_c", "nvmlDeviceGetTemperature", (0,)),
    ("sm_clock_mhz", "nvmlDeviceGetClockInfo", (1,)),
)


class LoadReader:
    """Reads the cheap values of whole devices; keeps the time of the last sample per GPU."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._last_sample_us: dict[str, int] = {}
        self._without_buffer: dict[str, int] = {}

    def read(self, tick: DeviceTick, handle: Any, *, mig_enabled: bool, power: bool) -> None:
        """Put every load value of the device into ``tick``; stops early at a lost device.

        ``power``: also what `POWER_FIELDS` ask; False where the traffic's question asks it, too.
        """
        self._single(tick, handle)
        if tick.faults.get("power_mw") is Status.LOST:
            return
        read_memory(self._nvml, tick, handle)
        self._reasons(tick, handle)
        if power:
            read_fields(self._nvml, tick, handle, POWER_FIELDS)
        if mig_enabled:
            # The driver has no utilisation for a board in MIG mode: unknown, never idle.
            for name in ("util_ratio", "mem_util_ratio", "util_mean_ratio"):
                tick.faults[name] = Status.NOT_SUPPORTED
            return
        self._utilisation(tick, handle)
        self._sample_buffer(tick, handle)

    def _single(self, tick: DeviceTick, handle: Any) -> None:
        for metric, function, arguments in _SINGLE:
            value, status = self._nvml.call(function, handle, *arguments)
            if status is Status.OK:
                value, status = judge(metric, value)
            tick.put(metric, value, status)
            if status is Status.LOST:
                return

    def _utilisation(self, tick: DeviceTick, handle: Any) -> None:
        rates, status = self._nvml.call("nvmlDeviceGetUtilizationRates", handle)
        for metric, name in (("util_ratio", "gpu"), ("mem_util_ratio", "memory")):
            if status is Status.OK:
                tick.put(metric, *judge(metric, getattr(rates, name), _PERCENT))
            else:
                tick.put(metric, None, status)

    def _sample_buffer(self, tick: DeviceTick, handle: Any) -> None:
        """The mean of all samples that the driver took since the last tick: nothing is missed."""
        if self._without_buffer.get(tick.gpu_uuid, 0) > 0:
            self._without_buffer[tick.gpu_uuid] -= 1
            tick.put("util_mean_ratio", None, Status.NOT_SUPPORTED)
            return
        since = self._last_sample_us.get(tick.gpu_uuid, 0)
        answer, status = self._nvml.rows("nvmlDeviceGetSamples", handle, _GPU_UTIL_SAMPLES, since)
        if status is not Status.OK:
            tick.put("util_mean_ratio", None, status)
            if status is Status.NOT_SUPPORTED:
                self._without_buffer[tick.gpu_uuid] = _ASK_AGAIN
            return
        samples = [s for s in (answer[1] if answer else ()) if s.timeStamp > since]
        if samples:
            # The driver's own clock, of no fixed epoch: good for "newer than", for nothing else.
            self._last_sample_us[tick.gpu_uuid] = max(s.timeStamp for s in samples)
        if since == 0 or not samples:
            tick.put("util_mean_ratio", None, Status.STALE)
            return
        judged = [judge("util_mean_ratio", s.sampleValue.uiVal, _PERCENT)[0] for s in samples]
        good = [ratio for ratio in judged if ratio is not None]
        if not good:
            tick.put("util_mean_ratio", None, Status.IMPLAUSIBLE)
            return
        tick.put("util_mean_ratio", sum(good) / len(good), Status.OK)

    def _reasons(self, tick: DeviceTick, handle: Any) -> None:
        value, status = self._nvml.call("nvmlDeviceGetCurrentClocksEventReasons", handle)
        if status is Status.NOT_SUPPORTED:  # its name before driver 535
            value, status = self._nvml.call("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        if status is Status.OK:
            value, status = judge("clocks_event_reasons", value)
        tick.put("clocks_event_reasons", value, status)


def read_memory(nvml: Nvml, tick: DeviceTick, handle: Any) -> None:
    """Memory with the driver's part apart (v2), or v1, which counts that part as used."""
    info, status = nvml.call("nvmlDeviceGetMemoryInfo_v2", handle)
    has_reserved = status is Status.OK
    if status is Status.NOT_SUPPORTED:
        info, status = nvml.call("nvmlDeviceGetMemoryInfo", handle)
    if status is not Status.OK:
        for name in ("mem_total_mib", "mem_used_mib", "mem_reserved_mib"):
            tick.put(name, None, status)
        return
    tick.put("mem_total_mib", *judge("mem_total_mib", info.total, _MIB))
    used, used_status = judge("mem_used_mib", info.used, _MIB)
    if used is not None and info.used > info.total:
        used, used_status = None, Status.IMPLAUSIBLE
    tick.put("mem_used_mib", used, used_status)
    if has_reserved:
        tick.put("mem_reserved_mib", *judge("mem_reserved_mib", info.reserved, _MIB))
    else:
        tick.put("mem_reserved_mib", None, Status.NOT_SUPPORTED)


def read_fields(
    nvml: Nvml, tick: DeviceTick, handle: Any, wanted: Sequence[tuple[str, int, int]]
) -> None:
    """Put (metric, field id, scope) values into ``tick``; each field has a status of its own."""
    ids = tuple((field_id, scope) for _, field_id, scope in wanted)
    answers, status = nvml.fields(handle, ids)
    if status is not Status.OK:
        for metric, _, _ in wanted:
            tick.put(metric, None, status)
        return
    put_fields(tick, wanted, answers)


def put_fields(
    tick: DeviceTick, wanted: Sequence[tuple[str, int, int]], answers: Sequence[Field]
) -> None:
    """Put answers, in the order of what was ``wanted``, into ``tick``."""
    for (metric, _, _), (raw, reason) in zip(wanted, answers, strict=True):
        tick.put(metric, *((None, reason) if raw is None else judge(metric, raw)))
