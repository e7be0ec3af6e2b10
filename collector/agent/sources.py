"""What the collection asks beside the GPUs: who holds them, the host, the kernel's log."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from collector.host.kernel_log import KernelLog, same_bus
from collector.host.sampler import HostSampler
from collector.mapping.attribution import Attribution
from collector.mapping.mapper import Mapper
from collector.mapping.node import NodeMapper
from collector.telemetry.tick import DriverEvent, Tick


class HostSource(Protocol):
    """The node's own CPU, memory, pressure and network, see `collector.host`."""

    def read(
        self, ts: datetime, mono_s: float, attribution: Attribution, step_s: float
    ) -> dict[str, list[Any]]:
        """`host_sample` rows for that instant."""
        ...


@dataclass(frozen=True, slots=True)
class NodeSources:
    """The sources of a node; ``host`` and ``kernel_log`` None: not asked."""

    mapper: Mapper = field(default_factory=NodeMapper)
    host: HostSource | None = field(default_factory=HostSampler)
    kernel_log: KernelLog | None = field(default_factory=KernelLog)


def unreported(tick: Tick, logged: list[tuple[str, int]]) -> list[DriverEvent]:
    """Xids in the kernel's log that the driver did not give as events in the same tick."""
    given = {(event.gpu_uuid, event.code) for event in tick.events}
    found: dict[tuple[str, int], DriverEvent] = {}
    for bus_id, code in logged:
        for device in tick.inventory:
            if device.pci_bus_id is not None and same_bus(device.pci_bus_id, bus_id):
                key = (device.gpu_uuid, code)
                if key not in given:
                    found[key] = DriverEvent(tick.ts, device.gpu_uuid, code)
    return list(found.values())


def host_size(proc: Path = Path("/proc")) -> tuple[int | None, int | None]:
    """The node's CPUs and memory in MiB, as the kernel counts them."""
    try:
        cpus = sum(
            line.startswith("processor") for line in (proc / "cpuinfo").read_text().splitlines()
        )
        total = (proc / "meminfo").read_text().split("MemTotal:")[1].split()[0]
        return cpus or None, int(total) // 1024
    except (OSError, ValueError, IndexError):
        return None, None
