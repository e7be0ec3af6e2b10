"""What somebody has to do: files to change, commands to run, and the same backwards."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Scheduler(StrEnum):
    """Schedulers that a change can be handed over to."""

    SLURM = "slurm"
    KUEUE = "kueue"
    VOLCANO = "volcano"
    KAI = "kai"
    YARN = "yarn"


class Known(StrEnum):
    """Where the configuration comes from that the change is a change of: the file itself, settings
    as the scheduler showed them, or what the policy before it implies."""

    FILE = "file"
    STORED = "stored"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Edit:
    """One file before and after; None: there is none. Unless ``known`` is the file itself, the
    texts hold only the lines that are known, and the rest of the real file stays."""

    file: str
    before: str | None
    after: str | None
    known: Known = Known.FILE

    def diff(self) -> str:
        """The change as a unified diff that `patch` takes."""
        return "".join(
            difflib.unified_diff(
                (self.before or "").splitlines(keepends=True),
                (self.after or "").splitlines(keepends=True),
                "/dev/null" if self.before is None else self.file,
                "/dev/null" if self.after is None else self.file,
            )
        )

    def back(self) -> Edit:
        """The edit that undoes this one."""
        return Edit(self.file, self.after, self.before, self.known)


@dataclass(frozen=True, slots=True)
class Run:
    """A command, where it is run (empty: anywhere with the scheduler's client), and its undoing.
    ``last``: what makes the rest take effect, and so comes last on the way back, too."""

    command: str
    undo: str
    where: str = ""
    last: bool = False

    def back(self) -> Run:
        """The command that undoes this one."""
        return Run(self.undo, self.command, self.where, self.last)


@dataclass(frozen=True, slots=True)
class NotExpressed:
    """A key that the scheduler has no setting for."""

    key: str
    before: object
    after: object
    reason: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A key that the scheduler takes only in its own way, and how that differs."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Handover:
    """The change for one scheduler. ``check`` has no effect; ``verify`` shows that it took;
    ``modelled``: changed keys that only the simulation has."""

    scheduler: Scheduler
    edits: tuple[Edit, ...]
    runs: tuple[Run, ...]
    check: tuple[str, ...]
    verify: tuple[str, ...]
    cannot: tuple[NotExpressed, ...]
    remarks: tuple[Remark, ...]
    modelled: tuple[str, ...]

    @property
    def apply(self) -> tuple[Edit | Run, ...]:
        """Files first, then commands, in this order."""
        return (*self.edits, *self.runs)

    @property
    def rollback(self) -> tuple[Edit | Run, ...]:
        """Files back first, then the commands' undoing from the last one, then what is last."""
        edits = [edit.back() for edit in reversed(self.edits)]
        runs = [run.back() for run in reversed(self.runs)]
        return (*edits, *sorted(runs, key=lambda run: run.last))

    @property
    def empty(self) -> bool:
        """There is nothing to do."""
        return not self.edits and not self.runs

    @property
    def complete(self) -> bool:
        """Everything that changes is expressed."""
        return not self.cannot

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "scheduler": self.scheduler.value,
            "apply": [_step(step) for step in self.apply],
            "check": list(self.check),
            "verify": list(self.verify),
            "rollback": [_step(step) for step in self.rollback],
            "cannot": [
                {"key": one.key, "before": one.before, "after": one.after, "reason": one.reason}
                for one in self.cannot
            ],
            "remarks": [{"key": one.key, "text": one.text} for one in self.remarks],
            "modelled_only": list(self.modelled),
            "complete": self.complete,
        }


def applied(files: Mapping[str, str], steps: tuple[Edit | Run, ...]) -> dict[str, str]:
    """Configuration files after the edits among the steps."""
    found = dict(files)
    for step in steps:
        if not isinstance(step, Edit):
            continue
        found.pop(step.file, None)
        if step.after is not None:
            found[step.file] = step.after
    return found


def _step(step: Edit | Run) -> dict[str, Any]:
    if isinstance(step, Run):
        return {"run": step.command, "where": step.where or None}
    return {
        "file": step.file,
        "known": step.known.value,
        "diff": step.diff(),
        "before": step.before,
        "after": step.after,
    }
