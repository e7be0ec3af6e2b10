"""Use of CPU and memory as counters and levels, of the node and of one control group."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from collector.host.kernel_file import content

_MIB = 2.0**20
# cgroup v1 writes a number near 2^63 for "no limit".
_NO_LIMIT = 2**60


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds so far, and memory now. None = not readable here."""

    cpu_s: float | None
    cpus: int | None
    mem_used_mib: float | None
    mem_total_mib: float | None


def node_usage(proc: Path) -> Usage:
    """Of the whole node; memory that can be given back at once counts as free."""
    cpu_s, cpus = _node_cpu(proc / "stat")
    used, total = _node_memory(proc / "meminfo")
    return Usage(cpu_s, cpus, used, total)


def group_usage(root: Path, path: str) -> Usage | None:
    """Of one control group under ``root`` (/sys/fs/cgroup), in either hierarchy; None if gone."""
    stat, cpu_set, used, limit = _unified_files(root, path)
    cpu_s = _unified_cpu(stat)
    if cpu_s is not None:
        return Usage(cpu_s, _cpu_set(cpu_set), _mib(used), _mib(limit))
    for name in ("cpu,cpuacct", "cpuacct"):
        old = root / name / path.lstrip("/")
        if old.is_dir():
            memory = root / "memory" / path.lstrip("/")
            nanos = _number(old / "cpuacct.usage")
            return Usage(
                None if nanos is None else nanos / 1e9,
                _cpu_set(root / "cpuset" / path.lstrip("/") / "cpuset.cpus"),
                _mib(memory / "memory.usage_in_bytes"),
                _mib(memory / "memory.limit_in_bytes"),
            )
    return None


@lru_cache(maxsize=1024)
def _unified_files(root: Path, path: str) -> tuple[Path, ...]:
    folder = root / path.lstrip("/")
    names = ("cpu.stat", "cpuset.cpus.effective", "memory.current", "memory.max")
    return tuple(folder / name for name in names)


def _node_cpu(stat: Path) -> tuple[float | None, int | None]:
    try:
        lines = content(stat).partition(b"\nintr")[0].split(b"\n")
        fields = [int(field) for field in lines[0].split()[1:9]]
    except (OSError, ValueError, IndexError):
        return None, None
    # user nice system idle iowait irq softirq steal; waiting for a disk is not use.
    busy = sum(fields) - fields[3] - fields[4]
    cpus = sum(line.startswith(b"cpu") for line in lines) - 1
    return busy / os.sysconf("SC_CLK_TCK"), cpus or None


def _node_memory(meminfo: Path) -> tuple[float | None, float | None]:
    try:
        lines = content(meminfo).split(b"\n", 5)[:5]  # both are in the first lines
        pairs = dict(line.split(b":", 1) for line in lines if b":" in line)
        total = int(pairs[b"MemTotal"].split()[0]) / 1024.0
        return total - int(pairs[b"MemAvailable"].split()[0]) / 1024.0, total
    except (OSError, ValueError, KeyError, IndexError):
        return None, None


def _unified_cpu(stat: Path) -> float | None:
    try:
        for line in content(stat).split(b"\n"):
            if line.startswith(b"usage_usec "):
                return int(line.split()[1]) / 1e6
    except (OSError, ValueError, IndexError):
        return None
    return None


def _cpu_set(file: Path) -> int | None:
    """The number of CPUs in ``0-3,8``."""
    try:
        text = content(file).decode("ascii").strip()
        ends = [part.split("-") for part in text.split(",") if part]
        return sum(int(pair[-1]) - int(pair[0]) + 1 for pair in ends) or None
    except (OSError, ValueError):
        return None


def _mib(file: Path) -> float | None:
    number = _number(file)
    return None if number is None or number >= _NO_LIMIT else number / _MIB


def _number(file: Path) -> int | None:
    try:
        return int(content(file, 64))
    except (OSError, ValueError):  # "max" is no limit
        return None
