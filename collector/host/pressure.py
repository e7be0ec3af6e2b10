"""Pressure stall information: the part of time in which somebody waited for CPU, memory or disk."""

from __future__ import annotations

from pathlib import Path

RESOURCES = ("cpu", "memory", "io")


def stalled_us(file: Path) -> int | None:
    """Microseconds since boot in which at least one task was stalled; None where it is not kept."""
    try:
        with file.open("rb", buffering=0) as opened:
            some = opened.read(256).partition(b"\n")[0]
        return int(some.rpartition(b"total=")[2]) if some.startswith(b"some ") else None
    except (OSError, ValueError):
        return None


def node_files(proc: Path) -> dict[str, Path]:
    """The files of the whole node."""
    return {name: proc / "pressure" / name for name in RESOURCES}


def group_files(folder: Path) -> dict[str, Path]:
    """The files of one control group (unified hierarchy only)."""
    return {name: folder / f"{name}.pressure" for name in RESOURCES}
