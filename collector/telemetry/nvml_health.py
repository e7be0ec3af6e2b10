"""ECC, remapped rows, memory temperature, slowdowns, video engines, power cap, and Xid events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from collector.nvml import Nvml
from collector.telemetry.metrics import SLOWDOWNS, judge
from collector.telemetry.nvml_load import read_fields
from collector.telemetry.status import Status
from collector.telemetry.tick import DeviceTick, DriverEvent

_XID = 8  # nvmlEventTypeXidCriticalError
_WAIT_MS = 1
_PERCENT = 0.01
_MOST_EVENTS = 100  # per tick; a GPU in a fault storm must not stop the collection
_MEMORY_TEMPERATURE = ("mem_temperature_c", 82, 0)
_SLOWDOWN_FIELDS = (74, 75, 76, 77, 78, 79, 269, 270, 271)
_FIELDS = (
    _MEMORY_TEMPERATURE,
    *((name, field, 0) for name, field in zip(SLOWDOWNS, _SLOWDOWN_FIELDS, strict=True)),
)
_ERRORS = "nvmlDeviceGetTotalEccErrors"
# (metric, function, arguments): one number each. Clock 2 = memory. Errors: 0 corrected
# 1 uncorrected, then 0 since driver load 1 for ever.
_SINGLE: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("mem_clock_mhz", "nvmlDeviceGetClockInfo", (2,)),
    ("pcie_replays_total", "nvmlDeviceGetPcieReplayCounter", ()),
    ("ecc_corrected_total", _ERRORS, (0, 0)), ("ecc_uncorrected_total", _ERRORS, (1, 0)),
    ("ecc_corrected_lifetime_total", _ERRORS, (0, 1)),
    ("ecc_uncorrected_lifetime_total", _ERRORS, (1, 1)),
)  # fmt: skip
_MEDIA = (
    ("encoder_ratio", "nvmlDeviceGetEncoderUtilization"),
    ("decoder_ratio", "nvmlDeviceGetDecoderUtilization"),
)
_ROWS = (
    "remapped_rows_correctable_total", "remapped_rows_uncorrectable_total", "remap_pending",
    "remap_failed",
)  # fmt: skip


def read_health(nvml: Nvml, tick: DeviceTick, handle: Any) -> None:
    """Put the values of a whole device that change rarely into ``tick``."""
    read_fields(nvml, tick, handle, _FIELDS)
    limit, status = nvml.call("nvmlDeviceGetPowerManagementLimit", handle)
    tick.put(
        "power_limit_mw", *((None, status) if limit is None else judge("power_limit_mw", limit))
    )
    for metric, function in _MEDIA:
        pair, status = nvml.call(function, handle)
        tick.put(metric, *((None, status) if pair is None else judge(metric, pair[0], _PERCENT)))
    for metric, function, arguments in _SINGLE:
        value, status = nvml.call(function, handle, *arguments)
        if status is Status.OK:
            value, status = judge(metric, value)
        tick.put(metric, value, status)
    rows, status = nvml.call("nvmlDeviceGetRemappedRows", handle)
    for position, metric in enumerate(_ROWS):
        if status is Status.OK:
            tick.put(metric, *judge(metric, rows[position]))
        else:
            tick.put(metric, None, status)


class XidReader:
    """Takes Xid events off the driver's queue at each tick.

    The wait is a millisecond, in the reader's own thread: a second thread inside the driver at
    shutdown is a known crash, and events queue in the driver meanwhile.
    """

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._set: Any = None
        self._registered: dict[str, bool] = {}

    def watch(self, handles: Mapping[str, Any]) -> None:
        """Register devices that are new; one that refuses is not asked again."""
        for uuid, handle in handles.items():
            if uuid in self._registered:
                continue
            if self._set is None:
                self._set, status = self._nvml.call("nvmlEventSetCreate")
                if status is not Status.OK:
                    self._set = None
                    return
            _, status = self._nvml.call("nvmlDeviceRegisterEvents", handle, _XID, self._set)
            self._registered[uuid] = status is Status.OK

    def take(self, now: datetime) -> list[DriverEvent]:
        """The events since the last tick, at most a hundred."""
        events: list[DriverEvent] = []
        while self._set is not None and len(events) < _MOST_EVENTS:
            event, status = self._nvml.call("nvmlEventSetWait_v2", self._set, _WAIT_MS)
            if status is not Status.OK:
                break  # a time-out is the quiet case
            uuid, _ = self._nvml.call("nvmlDeviceGetUUID", event.device)
            if int(event.eventType) == _XID:
                events.append(DriverEvent(now, uuid, int(event.eventData)))
        return events
