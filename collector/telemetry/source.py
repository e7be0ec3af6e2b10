"""What every source of GPU facts gives, real or made up."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from collector.telemetry.tick import Tick


class Group(StrEnum):
    """Values that are read together, by how much a reading costs the driver."""

    LOAD = "load"  # utilisation, memory, power, energy, clocks: microseconds
    PROCESS = "process"  # process lists: milliseconds under the driver's lock
    LINK = "link"  # NVLink and PCIe totals; every single link with HEALTH
    HEALTH = "health"  # ECC, remapped rows, memory temperature
    TOPOLOGY = "topology"  # links, fabric, distances: at start and on change


class GpuSource(Protocol):
    """A place to read GPUs from; not shared between threads."""

    def read(self, due: frozenset[Group]) -> Tick:
        """Enumerate anew and read the groups that are due; one sick device never fails the rest.

        Raises DriverGoneError when the library itself stopped answering.
        """
        ...

    def close(self) -> None:
        """Give back what the source holds; the source is not used again."""
        ...
