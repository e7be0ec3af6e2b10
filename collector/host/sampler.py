"""`host_sample` rows: one for the node, one per job, pod or container with processes on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from collector.host import pressure, usage
from collector.host.network import Network
from collector.host.usage import Usage
from collector.mapping.attribution import Attribution
from collector.telemetry.rows import micros

_NAMES = (
    "run_id", "ts", "step_s", "cpu_used", "cpus", "mem_used_mib", "mem_total_mib",
    "cpu_pressure_ratio", "mem_pressure_ratio", "io_pressure_ratio", "net_rx_bytes",
    "net_tx_bytes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Before:
    mono_s: float
    cpu_s: float | None
    stalled_us: Mapping[str, int | None]


_NOTHING = _Before(0.0, None, {})
_Measured = tuple[str | None, Usage, dict[str, Path]]


class HostSampler:
    """Turns counters into use over the time since the tick before; the first tick has no rates."""

    def __init__(
        self,
        *,
        proc: Path = Path("/proc"),
        sys: Path = Path("/sys"),
        cgroups: Path = Path("/sys/fs/cgroup"),
    ) -> None:
        self._proc = proc
        self._network = Network(sys)
        self._cgroups = cgroups
        self._before: dict[str | None, _Before] = {}

    def read(
        self, ts: datetime, mono_s: float, attribution: Attribution, step_s: float
    ) -> dict[str, list[Any]]:
        """Rows of the node and of every owner that has a control group."""
        rows: dict[str, list[Any]] = {name: [] for name in _NAMES}
        now: dict[str | None, _Before] = {}
        received, sent = self._network.counters()
        measured: list[_Measured] = [
            (None, usage.node_usage(self._proc), pressure.node_files(self._proc))
        ]
        measured += self._groups(attribution)
        for key, used, files in measured:
            stalled = {name: pressure.stalled_us(file) for name, file in files.items()}
            now[key] = _Before(mono_s, used.cpu_s, stalled)
            before = self._before.get(key, _NOTHING)
            elapsed_s = mono_s - before.mono_s
            waits = [
                _rate(stalled[name], before.stalled_us.get(name), elapsed_s * 1e6)
                for name in pressure.RESOURCES
            ]
            row = (
                key, micros(ts), step_s,
                _rate(used.cpu_s, before.cpu_s, elapsed_s), used.cpus,
                used.mem_used_mib, used.mem_total_mib, *(_at_most_one(w) for w in waits),
                received if key is None else None, sent if key is None else None,
            )  # fmt: skip
            for name, value in zip(_NAMES, row, strict=True):
                rows[name].append(value)
        self._before = now
        return rows

    def _groups(self, attribution: Attribution) -> list[_Measured]:
        found: list[_Measured] = []
        for key, path in sorted(attribution.cgroups.items()):
            used = usage.group_usage(self._cgroups, path)
            if used is not None:
                found.append((key, used, pressure.group_files(self._cgroups, path)))
        return found


def _rate(now: float | None, before: float | None, elapsed: float) -> float | None:
    """The growth of a counter per unit of time; None at the first tick and after a reset."""
    if now is None or before is None or elapsed <= 0 or now < before:
        return None
    return (now - before) / elapsed


def _at_most_one(ratio: float | None) -> float | None:
    # The kernel's count is a little ahead of our clock at times.
    return None if ratio is None else min(ratio, 1.0)
