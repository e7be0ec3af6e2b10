"""A made-up node behind the same protocol as the real one, for tests and demonstrations.

A scenario is flat ``key = value`` text: ``gpuN.x`` is about GPU N, ``gpu.x`` about all of them.
The stub driver library of the tests reads the same files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from collector.errors import DriverGoneError
from collector.telemetry.device import Device, Link, MigInstance
from collector.telemetry.metrics import GPM_IDS, judge
from collector.telemetry.source import Group
from collector.telemetry.status import Status
from collector.telemetry.tick import DeviceTick, ProcessUse, Tick

_KIB = 1024.0
# metric -> (scenario key, unit, group)
_KEYS: dict[str, tuple[str, float, Group]] = {
    "util_ratio": ("util", 0.01, Group.LOAD),
    "mem_util_ratio": ("mem_util", 0.01, Group.LOAD),
    "mem_total_mib": ("mem_mib", 1.0, Group.LOAD),
    "mem_used_mib": ("used_mib", 1.0, Group.LOAD),
    "mem_reserved_mib": ("reserved_mib", 1.0, Group.LOAD),
    "power_mw": ("power_mw", 1.0, Group.LOAD),
    "power_limit_mw": ("power_limit_mw", 1.0, Group.HEALTH),
    "energy_total_mj": ("energy_mj", 1.0, Group.LOAD),
    "temperature_c": ("temperature", 1.0, Group.LOAD),
    "sm_clock_mhz": ("sm_clock", 1.0, Group.LOAD),
    "mem_clock_mhz": ("mem_clock", 1.0, Group.HEALTH),
    "clocks_event_reasons": ("reasons", 1.0, Group.LOAD),
    "nvlink_tx_total_bytes": ("nvlink_tx_kib", _KIB, Group.LINK),
    "nvlink_rx_total_bytes": ("nvlink_rx_kib", _KIB, Group.LINK),
    "pcie_tx_total_bytes": ("pcie_tx_bytes", 1.0, Group.LINK),
    "pcie_rx_total_bytes": ("pcie_rx_bytes", 1.0, Group.LINK),
    "ecc_uncorrected_total": ("ecc_unc", 1.0, Group.HEALTH),
}
_NO_MIG = frozenset({"util_ratio", "mem_util_ratio"})
_KINDS = {"C": "compute", "G": "graphics", "M": "mps", "B": "compute"}
_REMOTE = {"0": "gpu", "2": "switch"}


def parse(text: str) -> dict[str, str]:
    """The scenario in ``text``; lines without ``=`` and comments say nothing."""
    lines = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {key.strip(): value.strip() for key, equals, value in lines if equals}


class ScenarioSource:
    """Reads a scenario, anew at each tick when it is a file."""

    def __init__(
        self,
        scenario: Path | Mapping[str, str],
        *,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._scenario = scenario
        self._clock = clock
        self._monotonic = monotonic
        self._born_s = monotonic()
        self._now: Mapping[str, str] = {}
        self._elapsed_s = 0.0

    def read(self, due: frozenset[Group]) -> Tick:
        """See `GpuSource.read`."""
        mono_s = self._monotonic()
        self._now = self._load()
        self._elapsed_s = mono_s - self._born_s
        if self._now.get("driver_gone") == "1":
            raise DriverGoneError(
                "the scenario says that the driver is gone: the collector must start anew"
            )
        devices = [self._device(index) for index in range(int(self._now.get("count", "1")))]
        ticks = [tick for device in devices for tick in self._ticks(device, due)]
        return Tick(self._clock(), mono_s, devices, ticks)

    def close(self) -> None:
        """See `GpuSource.close`; there is nothing to give back."""

    def _load(self) -> Mapping[str, str]:
        if isinstance(self._scenario, Path):
            return parse(self._scenario.read_text(encoding="utf-8"))
        return self._scenario

    def _text(self, index: int, key: str) -> str | None:
        return self._now.get(f"gpu{index}.{key}", self._now.get(f"gpu.{key}"))

    def _number(self, index: int, key: str) -> float | None:
        text = self._text(index, key)
        if not text:
            return None
        rate = self._text(index, f"{key}_per_s")
        return float(text) + (float(rate) * self._elapsed_s if rate else 0.0)

    def _whole(self, index: int, key: str) -> int | None:
        number = self._number(index, key)
        return None if number is None else int(number)

    def _device(self, index: int) -> Device:
        mig = self._whole(index, "mig")
        lost = self._text(index, "lost") == "1"
        minor = self._whole(index, "minor")
        return Device(
            gpu_uuid=self._text(index, "uuid") or f"GPU-00000000-0000-0000-0000-{index:012d}",
            gpu_index=index,
            status=Status.LOST if lost else Status.OK,
            name=self._text(index, "name") or "NVIDIA H100 80GB HBM3",
            minor_number=index if minor is None else minor,
            pci_bus_id=f"00000000:{0x10 + index:02X}:00.0",
            driver_version=self._now.get("driver", "590.48.01"),
            architecture=self._whole(index, "architecture") or 9,
            mem_total_mib=self._number(index, "mem_mib"),
            mem_reserved_mib=self._number(index, "reserved_mib"),
            mem_unified=self._text(index, "mem_mib") is None,
            mig_enabled=None if mig is None else bool(mig),
            compute_mode="default",
            mig=tuple(self._instances(index)) if mig and not lost else (),
            links=() if mig else self._links(index),
        )

    def _instances(self, index: int) -> list[MigInstance]:
        found = []
        for slot in range(7):
            uuid = self._text(index, f"mig{slot}.uuid")
            if uuid:
                found.append(
                    MigInstance(
                        mig_uuid=uuid,
                        gpu_instance_id=self._whole(index, f"mig{slot}.gi") or slot,
                        compute_instance_id=self._whole(index, f"mig{slot}.ci") or 0,
                        profile=self._text(index, f"mig{slot}.profile"),
                        gpu_slices=self._whole(index, f"mig{slot}.slices") or 1,
                        mem_mib=self._number(index, f"mig{slot}.mem_mib"),
                    )
                )
        return found

    def _links(self, index: int) -> tuple[Link, ...]:
        remote = _REMOTE.get(self._text(index, "link_remote") or "2", "unknown")
        count = self._whole(index, "links") or 0
        return tuple(Link(link, remote, None, 4) for link in range(count))

    def _ticks(self, device: Device, due: frozenset[Group]) -> list[DeviceTick]:
        tick = DeviceTick(device.gpu_uuid)
        if device.status is not Status.OK:
            tick.faults["device"] = device.status
            return [tick]
        for metric, (key, unit, group) in _KEYS.items():
            if group in due:
                missing = device.mig_enabled and metric in _NO_MIG
                raw = None if missing else self._number(device.gpu_index, key)
                self._put(tick, metric, raw, unit)
        if Group.PROCESS in due:
            tick.processes = self._processes(device)
        return [
            tick,
            *(self._instance_tick(device, m, slot, due) for slot, m in self._slots(device)),
        ]

    def _put(self, tick: DeviceTick, metric: str, raw: float | None, unit: float = 1.0) -> None:
        if raw is None:
            tick.put(metric, None, Status.NOT_SUPPORTED)
        else:
            tick.put(metric, *judge(metric, raw, unit))

    def _slots(self, device: Device) -> list[tuple[int, MigInstance]]:
        slots = [s for s in range(7) if self._text(device.gpu_index, f"mig{s}.uuid")]
        return list(zip(slots, device.mig, strict=False))

    def _instance_tick(
        self, device: Device, instance: MigInstance, slot: int, due: frozenset[Group]
    ) -> DeviceTick:
        tick, index = DeviceTick(device.gpu_uuid, instance.mig_uuid), device.gpu_index
        if Group.LOAD in due:
            self._put(tick, "mem_total_mib", self._number(index, f"mig{slot}.mem_mib"))
            self._put(tick, "mem_used_mib", self._number(index, f"mig{slot}.used_mib") or 0.0)
            number = GPM_IDS["sm_active_ratio"]
            self._put(tick, "sm_active_ratio", self._number(index, f"mig{slot}.gpm.{number}"), 0.01)
        if Group.PROCESS in due:
            mine = [p for p in self._processes(device) if p.mig_uuid == instance.mig_uuid]
            tick.processes = mine
        return tick

    def _processes(self, device: Device) -> list[ProcessUse]:
        found: list[ProcessUse] = []
        while row := self._text(device.gpu_index, f"proc{len(found)}"):
            pid, kind, mem, sm, *place = row.split(",")
            mig = None
            for instance in device.mig:
                if place and instance.gpu_instance_id == int(place[0]):
                    mig = instance.mig_uuid
            memory = None if mem == "na" else float(mem)
            share = None if device.mig_enabled else int(sm) / 100.0
            found.append(ProcessUse(int(pid), _KINDS[kind], memory, share, mig))
        return found
