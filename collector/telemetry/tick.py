"""One reading of every device of a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from collector.telemetry.device import Device, Fabric, Link, MigInstance
from collector.telemetry.status import Status

ENDED = "ended"  # the kind of a process that came and went between two ticks


@dataclass(slots=True)
class ProcessUse:
    """One process on one GPU. ``pid`` is the host's. ``sm_util_ratio`` None = not measured."""

    pid: int
    kind: str  # compute, graphics, mps, ended
    mem_used_mib: float | None = None
    sm_util_ratio: float | None = None
    mig_uuid: str | None = None


@dataclass(slots=True)
class DeviceTick:
    """Values of one GPU (``mig_uuid`` None) or MIG instance.

    Every metric that was asked for is in ``values`` (it came and is plausible) or in ``faults``
    (why it did not). ``processes`` None = not asked at this tick or not readable.
    """

    gpu_uuid: str
    mig_uuid: str | None = None
    values: dict[str, float] = field(default_factory=dict)
    faults: dict[str, Status] = field(default_factory=dict)
    links: dict[int, tuple[float, float]] = field(default_factory=dict)  # link -> tx, rx bytes
    processes: list[ProcessUse] | None = None

    def put(self, metric: str, value: float | None, status: Status) -> None:
        """Keep a value with its status; a missing value without a reason counts as failed."""
        if status is Status.OK and value is not None:
            self.values[metric] = value
        else:
            self.faults[metric] = Status.FAILED if status is Status.OK else status


@dataclass(frozen=True, slots=True)
class DriverEvent:
    """An Xid that the driver reported; NVML gives no time, so ``ts`` is when it was taken."""

    ts: datetime
    gpu_uuid: str | None
    code: int


@dataclass(slots=True)
class Tick:
    """Everything a source gave at one instant; ``mono_s`` is a clock that never jumps."""

    ts: datetime
    mono_s: float
    inventory: list[Device]
    devices: list[DeviceTick]
    events: list[DriverEvent] = field(default_factory=list)

    def encode(self) -> dict[str, Any]:
        """As plain types, for the pipe between reader and supervisor."""
        return {
            "ts": self.ts.isoformat(),
            "mono_s": self.mono_s,
            "inventory": [
                asdict(device) | {"status": device.status.value} for device in self.inventory
            ],
            "devices": [_plain(device) for device in self.devices],
            "events": [
                {"ts": event.ts.isoformat(), "gpu_uuid": event.gpu_uuid, "code": event.code}
                for event in self.events
            ],
        }


def _plain(device: DeviceTick) -> dict[str, Any]:
    """By hand: the library's own way copies every dict and number, most of a tick's cost."""
    processes = device.processes
    return {
        "gpu_uuid": device.gpu_uuid,
        "mig_uuid": device.mig_uuid,
        "values": device.values,
        "faults": _by_reason(device.faults),
        "links": device.links,
        "processes": None if processes is None else [_process(use) for use in processes],
    }


def _by_reason(faults: Mapping[str, Status]) -> dict[str, list[str]]:
    """Most values that did not come have the same reason."""
    names: dict[str, list[str]] = {}
    for name, reason in faults.items():
        names.setdefault(reason.value, []).append(name)
    return names


def _by_name(faults: Mapping[str, list[str]]) -> dict[str, Status]:
    found: dict[str, Status] = {}
    for reason, names in faults.items():
        found |= dict.fromkeys(names, Status(reason))
    return found


def _process(use: ProcessUse) -> tuple[Any, ...]:
    return use.pid, use.kind, use.mem_used_mib, use.sm_util_ratio, use.mig_uuid


def decode(plain: Mapping[str, Any]) -> Tick:
    """The tick that `Tick.encode` gave."""
    return Tick(
        ts=datetime.fromisoformat(plain["ts"]),
        mono_s=plain["mono_s"],
        inventory=[_device(device) for device in plain["inventory"]],
        devices=[_device_tick(device) for device in plain["devices"]],
        events=[
            DriverEvent(datetime.fromisoformat(e["ts"]), e["gpu_uuid"], e["code"])
            for e in plain["events"]
        ],
    )


def _device(plain: Mapping[str, Any]) -> Device:
    fabric = plain["fabric"]
    return Device(
        **{
            **plain,
            "status": Status(plain["status"]),
            "mig": tuple(MigInstance(**m) for m in plain["mig"]),
            "links": tuple(Link(**link) for link in plain["links"]),
            "fabric": None if fabric is None else Fabric(**fabric),
        }
    )


def _device_tick(plain: Mapping[str, Any]) -> DeviceTick:
    processes = plain["processes"]
    return DeviceTick(
        gpu_uuid=plain["gpu_uuid"],
        mig_uuid=plain["mig_uuid"],
        values=plain["values"],
        faults=_by_name(plain["faults"]),
        links=plain["links"],
        processes=None if processes is None else [ProcessUse(*p) for p in processes],
    )
