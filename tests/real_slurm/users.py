"""Local users for the teams of a lab, one per account; added for the run and removed after it."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

COMMENT = "unstrand test user"
"""Marks the users that a run added, so that the next run removes those of one that was cut."""


class LabUsers:
    """Adds users that do not exist; removes those that carry our mark, and what they still run."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def add(self) -> None:
        for name in self._names:
            if _find(name) is None:
                shell = ("--no-create-home", "--shell", "/bin/sh")
                _run("useradd", *shell, "--comment", COMMENT, name)

    def remove(self) -> None:
        ours = [user for name in self._names if (user := _find(name)) and user.pw_gecos == COMMENT]
        self._end_processes({user.pw_uid for user in ours})
        for user in ours:
            _run("userdel", user.pw_name)

    def _end_processes(self, uids: set[int]) -> None:
        """Processes of jobs may outlive their slurmd."""
        deadline = time.monotonic() + 10
        while pids := _processes_of(uids):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise RuntimeError(f"processes of {self._names} do not end: {pids}")
            time.sleep(0.1)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _find(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _processes_of(uids: set[int]) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid in uids:
                found.append(int(entry.name))
    return found
