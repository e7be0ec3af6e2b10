"""Pressure stall information: the part of time in which somebody waited for CPU, memory or disk."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from collector.host.kernel_file import content

RESOURCES = ("cpu", "memory", "io")


def stalled_us(file: Path) -> int | None:
    """Microseconds since boot in which at least one task was stalled; None where it is not kept."""
    try:
        some = content(file, 256).partition(b"\n")[0]
        return int(some.rpartition(b"total=")[2]) if some.startswith(b"some ") else None
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=4)
def node_files(proc: Path) -> dict[str, Path]:
    """The files of the whole node."""
    return {name: proc / "pressure" / name for name in RESOURCES}


@lru_cache(maxsize=1024)
def group_files(root: Path, path: str) -> dict[str, Path]:
    """The files of one control group under ``root`` (unified hierarchy only)."""
    folder = root / path.lstrip("/")
    return {name: folder / f"{name}.pressure" for name in RESOURCES}
