"""Values that are read more rarely than the tick, kept for the exporter until the next reading."""

from __future__ import annotations

from dataclasses import replace

from collector.agent.schedule import Intervals
from collector.telemetry.metrics import METRICS
from collector.telemetry.source import Group
from collector.telemetry.tick import DeviceTick, Tick

# One reading may be late; after two that failed to come the value is not known any more.
_INTERVALS = 2.5
Place = tuple[str, str | None]


class Carry:
    """Fills the gaps between readings; a device that does not answer keeps nothing."""

    def __init__(self, intervals: Intervals) -> None:
        self._rare = {
            name: _INTERVALS * intervals.of(metric.group)
            for name, metric in METRICS.items()
            if metric.group is not Group.LOAD
        }
        self._kept: dict[Place, dict[str, tuple[float, float]]] = {}
        self._links: dict[Place, tuple[dict[int, tuple[float, float]], float]] = {}
        self._links_s = _INTERVALS * intervals.of(Group.HEALTH)

    def over(self, tick: Tick) -> Tick:
        """The tick with values of earlier ones where this one did not ask."""
        devices = [self._device(device, tick.mono_s) for device in tick.devices]
        present = {(device.gpu_uuid, device.mig_uuid) for device in devices}
        self._kept = {place: kept for place, kept in self._kept.items() if place in present}
        self._links = {place: kept for place, kept in self._links.items() if place in present}
        return replace(tick, devices=devices)

    def _device(self, device: DeviceTick, now_s: float) -> DeviceTick:
        place = (device.gpu_uuid, device.mig_uuid)
        if "device" in device.faults:
            self._kept.pop(place, None)
            self._links.pop(place, None)
            return device
        kept = self._kept.setdefault(place, {})
        for name in self._rare.keys() & device.values.keys():
            kept[name] = (device.values[name], now_s)
        missing = {
            name: value
            for name, (value, at_s) in kept.items()
            if name not in device.values
            and name not in device.faults
            and now_s - at_s <= self._rare[name]
        }
        links = self._each_link(place, device, now_s)
        if not missing and links is device.links:
            return device
        return replace(device, values=device.values | missing, links=links)

    def _each_link(
        self, place: Place, device: DeviceTick, now_s: float
    ) -> dict[int, tuple[float, float]]:
        if device.links:
            self._links[place] = (device.links, now_s)
        kept, at_s = self._links.get(place, ({}, now_s))
        return kept if kept and now_s - at_s <= self._links_s else device.links
