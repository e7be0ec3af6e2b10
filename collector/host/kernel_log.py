"""Xid messages in the kernel's log: the driver's own event path misses some of them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

_XID = re.compile(r"NVRM: Xid \(PCI:(?P<bus>[0-9A-Fa-f:.]+)\): (?P<code>\d+)")
_MOST_RECORDS = 1000  # per look; a GPU in a fault storm must not stop the collection


class KernelLog:
    """New Xid messages since the last look; nothing where the log may not be read."""

    def __init__(self, file: Path = Path("/dev/kmsg")) -> None:
        self._descriptor: int | None = None
        with contextlib.suppress(OSError):
            self._descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._descriptor, 0, os.SEEK_END)  # what was before us is not new

    @property
    def readable(self) -> bool:
        """Whether messages can be seen at all."""
        return self._descriptor is not None

    def read(self) -> list[tuple[str, int]]:
        """(PCI bus id, code) of each new message."""
        if self._descriptor is None:
            return []
        lines = []
        for _ in range(_MOST_RECORDS):
            try:
                record = os.read(self._descriptor, 8192)
            except BlockingIOError:
                break
            except BrokenPipeError:
                continue  # the ring went round before we came; the next record is there
            except OSError:
                break
            if not record:
                break
            lines.extend(record.decode("utf-8", "replace").splitlines())
        return xids(lines)


def xids(lines: Iterable[str]) -> list[tuple[str, int]]:
    """(PCI bus id, code) of each line that reports an Xid."""
    found = (_XID.search(line) for line in lines)
    return [(match["bus"], int(match["code"])) for match in found if match is not None]


def same_bus(one: str, other: str) -> bool:
    """Whether two spellings name one slot: ``0000:3b:00`` and ``00000000:3B:00.0``."""
    return _slot(one) == _slot(other)


def _slot(bus_id: str) -> tuple[int, ...]:
    parts = bus_id.partition(".")[0].split(":")
    try:
        return tuple(int(part, 16) for part in parts)
    except ValueError:
        return ()
