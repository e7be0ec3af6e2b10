"""The real source: one cycle over every GPU through NVML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from collector.nvml import Nvml
from collector.telemetry import nvml_links
from collector.telemetry.device import MigInstance
from collector.telemetry.nvml_accounting import AccountingReader
from collector.telemetry.nvml_gpm import GpmReader
from collector.telemetry.nvml_health import XidReader, read_health
from collector.telemetry.nvml_inventory import Inventory, Opened
from collector.telemetry.nvml_load import LoadReader, read_memory
from collector.telemetry.nvml_processes import ProcessReader, highest_pid
from collector.telemetry.source import Group
from collector.telemetry.status import Status
from collector.telemetry.tick import DeviceTick, Tick

# A GPU at work whose profiling counters say "nothing moved" has broken counters, not idle SMs.
_BUSY = 0.5


class NvmlSource:
    """Reads whole ticks. Opened in the process that uses it; not shared between threads."""

    def __init__(
        self, nvml: Nvml, *, clock: Callable[[], datetime], monotonic: Callable[[], float]
    ) -> None:
        self.nvml = nvml
        self._clock = clock
        self._monotonic = monotonic
        self._inventory = Inventory(nvml)
        self._load = LoadReader(nvml)
        self._gpm = GpmReader(nvml)
        self._processes = ProcessReader(nvml, highest_pid())
        self._traffic = nvml_links.TrafficReader(nvml)
        self._accounting = AccountingReader(nvml)
        self._xids = XidReader(nvml)
        self._placed: set[str] = set()

    def read(self, due: frozenset[Group]) -> Tick:
        """See `GpuSource.read`."""
        now, mono_s = self._clock(), self._monotonic()
        opened = self._inventory.scan()
        self._place(opened, anew=Group.TOPOLOGY in due)
        ticks = [tick for one in opened for tick in self._device(one, due, mono_s)]
        self._xids.watch({o.device.gpu_uuid: o.handle for o in opened if o.handle is not None})
        self._gpm.forget(_gpm_keys(opened))
        return Tick(now, mono_s, [o.device for o in opened], ticks, self._xids.take(now))

    def close(self) -> None:
        """See `GpuSource.close`."""
        self._gpm.forget(set())
        self.nvml.close()

    def _place(self, opened: list[Opened], *, anew: bool) -> None:
        """Links and distances change rarely: asked when due or when a device is new."""
        present = {one.device.gpu_uuid for one in opened if one.handle is not None}
        if not anew and present <= self._placed:
            return
        nvml_links.read_topology(self.nvml, opened)
        self._placed = present
        for one in opened:
            if one.handle is not None:
                self._inventory.remember(one.device)

    def _device(self, one: Opened, due: frozenset[Group], mono_s: float) -> list[DeviceTick]:
        tick = DeviceTick(one.device.gpu_uuid)
        if one.handle is None:
            tick.faults["device"] = one.device.status
            return [tick]
        if Group.LOAD in due:
            self._read_load(tick, one, mono_s, power=Group.LINK not in due)
        if Status.LOST in tick.faults.values():
            one.device = replace(one.device, status=Status.LOST)
            tick.faults["device"] = Status.LOST
            return [tick]
        if Group.LINK in due:
            each, power = Group.HEALTH in due, Group.LOAD in due
            self._traffic.read(tick, one.handle, one.device, each=each, power=power)
        if Group.HEALTH in due:
            read_health(self.nvml, tick, one.handle)
        if Group.PROCESS in due:
            self._read_processes(tick, one)
        return [tick, *self._instances(one, due, mono_s)]

    def _read_processes(self, tick: DeviceTick, one: Opened) -> None:
        self._processes.read(tick, one.handle, one.device)
        if not one.device.mig_enabled:
            self._accounting.read(tick, one.handle)
        if one.device.mem_unified:
            _unified(tick)

    def _read_load(self, tick: DeviceTick, one: Opened, mono_s: float, *, power: bool) -> None:
        mig_enabled = bool(one.device.mig_enabled)
        self._load.read(tick, one.handle, mig_enabled=mig_enabled, power=power)
        if Status.LOST not in tick.faults.values() and not one.device.mig_enabled:
            self._gpm.read(tick, one.handle, None, mono_s)
            _cross_check(tick)

    def _instances(self, one: Opened, due: frozenset[Group], mono_s: float) -> list[DeviceTick]:
        ticks, counted = [], set[int | None]()
        for instance in one.device.mig:
            tick = DeviceTick(one.device.gpu_uuid, instance.mig_uuid)
            handle = one.mig[instance.mig_uuid]
            if Group.LOAD in due:
                first = instance.gpu_instance_id not in counted
                counted.add(instance.gpu_instance_id)
                self._instance_load(tick, one, instance, first=first, mono_s=mono_s)
            if Group.PROCESS in due:
                self._processes.read(tick, handle, one.device)
            ticks.append(tick)
        return ticks

    def _instance_load(
        self, tick: DeviceTick, one: Opened, instance: MigInstance, *, first: bool, mono_s: float
    ) -> None:
        """Memory and counters belong to the GPU instance: counted on its first compute instance."""
        handle: Any = one.mig[instance.mig_uuid]
        if not first:
            for name in ("mem_used_mib", "mem_total_mib", "sm_active_ratio"):
                tick.faults[name] = Status.SHARED
            return
        read_memory(self.nvml, tick, handle)
        self._gpm.read(tick, one.handle, instance.gpu_instance_id, mono_s)


def _cross_check(tick: DeviceTick) -> None:
    active, util = tick.values.get("gr_active_ratio"), tick.values.get("util_ratio")
    if active == 0.0 and util is not None and util >= _BUSY:
        for name in [n for n in tick.values if n.endswith("_active_ratio")]:
            del tick.values[name]
            tick.faults[name] = Status.IMPLAUSIBLE


def _unified(tick: DeviceTick) -> None:
    """Where memory is the host's, what is used is what processes hold; there is no total."""
    held = [use.mem_used_mib for use in tick.processes or () if use.mem_used_mib is not None]
    if held:
        tick.faults.pop("mem_used_mib", None)
        tick.values["mem_used_mib"] = sum(held)


def _gpm_keys(opened: list[Opened]) -> set[tuple[str, int | None]]:
    keys: set[tuple[str, int | None]] = set()
    for one in opened:
        keys.add((one.device.gpu_uuid, None))
        keys.update((one.device.gpu_uuid, m.gpu_instance_id) for m in one.device.mig)
    return keys
