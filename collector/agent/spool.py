"""Batches on disk until the service has acknowledged them: bounded, and whole or not there."""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from collector.agent.batch import Batch

_MAGIC = b"USP1"
_HEAD = struct.Struct("<4sII")  # magic, length, checksum
MOST_BYTES = 256 * 2**20
_BLOCK = 4096
_MOST_IN_MEMORY = 200  # while the disk takes nothing: fifty minutes of ticks


@dataclass(slots=True)
class SpoolFigures:
    """What the spool has done since it was opened."""

    kept: int = 0
    dropped_full: int = 0
    dropped_torn: int = 0
    refused: int = 0
    disk_errors: int = 0


class Spool:
    """A folder with one file per batch, oldest first by name.

    A file appears under its name only when it is complete on disk, so that a kill or a power cut
    leaves no half batch; one that is torn all the same is found by its checksum and dropped. When
    the folder is full the oldest batches go. When the disk takes nothing, batches wait in memory.
    """

    def __init__(self, folder: Path, *, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._refused = folder / "refused"
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._memory: deque[tuple[str, bytes]] = deque()
        self.figures = SpoolFigures()
        folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.glob("*.new"):
            leftover.unlink(missing_ok=True)
        self._files = {f.name: _room(f.stat().st_size) for f in folder.glob("*.batch")}
        self._size = sum(self._files.values())

    @property
    def batches(self) -> int:
        """Batches that wait, on disk and in memory."""
        return len(self._files) + len(self._memory)

    @property
    def size_bytes(self) -> int:
        """Room on disk, in whole blocks."""
        return self._size

    def keep(self, batch: Batch) -> None:
        """Make the batch outlive this process."""
        raw = batch.pack()
        name = f"{batch.ts_us:020d}-{batch.boot_id[:12]}-{batch.sequence:010d}.batch"
        with self._lock:
            self.figures.kept += 1
            self._memory.append((name, raw))
            self._drain()

    def oldest(self) -> tuple[str, bytes] | None:
        """Name and bytes of the batch to send next; torn ones are dropped on the way."""
        with self._lock:
            self._drain()
            while self._files:
                name = min(self._files)
                raw = self._read(name)
                if raw is not None:
                    return name, raw
                self.figures.dropped_torn += 1
                self._forget(name)
            return self._memory[0] if self._memory else None

    def done(self, name: str) -> None:
        """The service has it."""
        with self._lock:
            self._forget(name)

    def refuse(self, name: str, raw: bytes) -> None:
        """The service will never take it: put it aside for a person to look at."""
        with self._lock:
            self.figures.refused += 1
            self._forget(name)
            aside = sorted(self._refused.glob("*.batch")) if self._refused.is_dir() else []
            try:
                self._refused.mkdir(exist_ok=True)
                for old in aside[: max(0, len(aside) - 99)]:
                    old.unlink(missing_ok=True)
                (self._refused / name).write_bytes(_framed(raw))
            except OSError:
                self.figures.disk_errors += 1

    def _drain(self) -> None:
        """Move what waits in memory to disk, as far as the disk takes it."""
        while self._memory:
            name, raw = self._memory[0]
            try:
                self._write(name, _framed(raw))
            except OSError:
                self.figures.disk_errors += 1
                while len(self._memory) > _MOST_IN_MEMORY:
                    self._memory.popleft()
                    self.figures.dropped_full += 1
                return
            self._memory.popleft()

    def _write(self, name: str, framed: bytes) -> None:
        self._make_room(_room(len(framed)))
        fresh = self._folder / f"{name}.new"
        try:
            with fresh.open("wb") as file:
                file.write(framed)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._folder / name)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
        self._files[name] = _room(len(framed))
        self._size += self._files[name]

    def _make_room(self, needed: int) -> None:
        while self._files and self._size + needed > self._most_bytes:
            self.figures.dropped_full += 1
            self._forget(min(self._files))

    def _forget(self, name: str) -> None:
        size = self._files.pop(name, None)
        if size is not None:
            self._size -= size
            (self._folder / name).unlink(missing_ok=True)
        if self._memory and self._memory[0][0] == name:
            self._memory.popleft()

    def _read(self, name: str) -> bytes | None:
        try:
            framed = (self._folder / name).read_bytes()
        except OSError:
            return None
        return unframe(framed)


def _room(size: int) -> int:
    """What a file of this size takes of a disk: whole blocks."""
    return -(-size // _BLOCK) * _BLOCK


def _framed(raw: bytes) -> bytes:
    return _HEAD.pack(_MAGIC, len(raw), zlib.crc32(raw)) + raw


def unframe(framed: bytes) -> bytes | None:
    """The bytes of a spool file; None for a torn one."""
    if len(framed) < _HEAD.size:
        return None
    magic, length, checksum = _HEAD.unpack_from(framed)
    raw = framed[_HEAD.size :]
    whole = magic == _MAGIC and len(raw) == length and zlib.crc32(raw) == checksum
    return raw if whole else None
