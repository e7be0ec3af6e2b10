"""GPM: how busy the parts of a GPU or MIG instance were between two samples (Hopper and newer).

It uses other hardware than profilers do, so it never locks Nsight or DCGM out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from collector.nvml import Nvml, gpm_request
from collector.telemetry.metrics import GPM_IDS, GPM_RATES, GPM_RATIOS, judge
from collector.telemetry.status import Status
from collector.telemetry.tick import DeviceTick

_SHORTEST_S = 0.2  # the driver wants samples more than 100 ms apart
_LONGEST_S = 600.0  # a window longer than this says nothing about now
# Instances of mixed sizes report a little over 100%; more than this is a wrong denominator.
_TOLERATED = 1.02
_MIB_PER_S = float(2**20)
NAMES = (*GPM_RATIOS, *GPM_RATES)


@dataclass(slots=True)
class _Held:
    sample: Any
    mono_s: float


class GpmReader:
    """Keeps the last sample per (GPU, GPU instance); samples belong to the driver and are freed."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._held: dict[tuple[str, int | None], _Held] = {}
        self._supported: dict[str, bool] = {}

    def read(
        self, tick: DeviceTick, handle: Any, gpu_instance_id: int | None, mono_s: float
    ) -> None:
        """Put the GPM values since the last tick into ``tick``; ``handle`` is the whole GPU's."""
        if not self._supports(tick.gpu_uuid, handle):
            _fail(tick, Status.NOT_SUPPORTED)
            return
        key = (tick.gpu_uuid, gpu_instance_id)
        held = self._held.get(key)
        if held is not None and mono_s - held.mono_s < _SHORTEST_S:
            _fail(tick, Status.STALE)
            return
        sample, status = self._take(handle, gpu_instance_id)
        if status is not Status.OK:
            _fail(tick, status)
            return
        self._held[key] = _Held(sample, mono_s)
        if held is None or mono_s - held.mono_s > _LONGEST_S:
            _fail(tick, Status.STALE)
        else:
            self._compare(tick, held.sample, sample)
        if held is not None:
            self._nvml.call("nvmlGpmSampleFree", held.sample)

    def forget(self, keep: set[tuple[str, int | None]]) -> None:
        """Free the samples of devices and instances that are gone."""
        for key in self._held.keys() - keep:
            self._nvml.call("nvmlGpmSampleFree", self._held.pop(key).sample)

    def _supports(self, uuid: str, handle: Any) -> bool:
        if uuid not in self._supported:
            answer, status = self._nvml.call("nvmlGpmQueryDeviceSupport", handle)
            self._supported[uuid] = status is Status.OK and bool(answer.isSupportedDevice)
        return self._supported[uuid]

    def _take(self, handle: Any, gpu_instance_id: int | None) -> tuple[Any, Status]:
        sample, status = self._nvml.call("nvmlGpmSampleAlloc")
        if status is not Status.OK:
            return None, status
        if gpu_instance_id is None:
            _, status = self._nvml.call("nvmlGpmSampleGet", handle, sample)
        else:
            _, status = self._nvml.call("nvmlGpmMigSampleGet", handle, gpu_instance_id, sample)
        if status is not Status.OK:
            self._nvml.call("nvmlGpmSampleFree", sample)
            return None, status
        return sample, Status.OK

    def _compare(self, tick: DeviceTick, before: Any, after: Any) -> None:
        request = gpm_request(before, after, [GPM_IDS[name] for name in NAMES])
        answer, status = self._nvml.call("nvmlGpmMetricsGet", request)
        if status is not Status.OK:
            _fail(tick, status)
            return
        for position, name in enumerate(NAMES):
            metric = answer.metrics[position]
            if int(metric.nvmlReturn) != 0:
                tick.put(name, None, Status.NOT_SUPPORTED)
            elif name in GPM_RATES:
                tick.put(name, *judge(name, metric.value, _MIB_PER_S))
            else:
                tick.put(name, *judge(name, _within(metric.value / 100.0)))


def _within(ratio: float) -> float:
    return min(ratio, 1.0) if ratio <= _TOLERATED else ratio


def _fail(tick: DeviceTick, status: Status) -> None:
    tick.faults |= dict.fromkeys(NAMES, status)
