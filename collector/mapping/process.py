"""What the kernel says of a process, from /proc."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from collector.host.kernel_file import content

_MOST_ENVIRONMENT = 2**20


@dataclass(frozen=True, slots=True)
class Process:
    """One process. (pid, start_ticks) names it for ever; the pid alone is reused."""

    pid: int
    start_ticks: int
    started_at: datetime | None
    uid: int
    cgroup: str  # the path of the unified hierarchy, or the longest of the old ones


class ProcReader:
    """Reads /proc (another ``root`` for the host's when in a container, or in tests)."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self.root, self._folder = root, str(root)
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._booted_at = self._boot_time()
        self._names: dict[int, str] = {}

    def start_ticks(self, pid: int) -> int | None:
        """When the process began, in the kernel's ticks since boot; None when there is none."""
        try:
            stat = content(f"{self._folder}/{pid}/stat", 4096)
            return int(stat.rpartition(b")")[2].split()[19])
        except (OSError, ValueError, IndexError):
            return None

    def read(self, pid: int) -> Process | None:
        """The process, or None when there is none, or none that may be seen."""
        folder, start_ticks = self.root / str(pid), self.start_ticks(pid)
        if start_ticks is None:
            return None
        try:
            uid = folder.stat().st_uid if self.root == Path("/proc") else _uid(folder)
            return Process(
                pid, start_ticks, self._started(start_ticks), uid, _cgroup(folder / "cgroup")
            )
        except (OSError, ValueError, IndexError):
            return None

    def environment(self, pid: int) -> Mapping[str, str]:
        """The environment at the start of the process; empty where it may not be read."""
        try:
            with Path(self._folder, str(pid), "environ").open("rb") as file:
                raw = file.read(_MOST_ENVIRONMENT)
        except OSError:
            return {}
        # Only the first "=" divides; names are compared whole: SLURM_JOB_ID is no SLURM_JOB_IDX.
        pairs = (item.partition(b"=") for item in raw.split(b"\0") if b"=" in item)
        return {
            name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
            for name, _, value in pairs
        }

    def command(self, pid: int) -> str:
        """The short name of the program, at most 15 characters."""
        try:
            return (self.root / str(pid) / "comm").read_text(errors="replace").strip()
        except OSError:
            return ""

    def user_name(self, uid: int) -> str:
        """The account's name by the password database, or the number as text."""
        if uid not in self._names:
            try:
                self._names[uid] = pwd.getpwuid(uid).pw_name
            except KeyError:
                self._names[uid] = str(uid)
        return self._names[uid]

    def _boot_time(self) -> datetime | None:
        try:
            for line in (self.root / "stat").read_text().splitlines():
                if line.startswith("btime "):
                    return datetime.fromtimestamp(int(line.split()[1]), UTC)
        except (OSError, ValueError):
            return None
        return None

    def _started(self, start_ticks: int) -> datetime | None:
        if self._booted_at is None:
            return None
        return self._booted_at + timedelta(seconds=start_ticks / self._ticks_per_s)


def _uid(folder: Path) -> int:
    for line in (folder / "status").read_text().splitlines():
        if line.startswith("Uid:"):
            return int(line.split()[1])
    raise ValueError("no Uid line")


def _cgroup(file: Path) -> str:
    """The path that says most: the unified hierarchy's, else the deepest of the old ones."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return ""
    paths = [line.split(":", 2)[2] for line in lines if line.count(":") >= 2]
    unified = [line[3:] for line in lines if line.startswith("0::")]
    if unified and unified[0] != "/":
        return unified[0]
    return max(paths, key=len, default="")
