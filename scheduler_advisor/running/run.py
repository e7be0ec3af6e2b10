"""One piece of long work as those who follow it see it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from scheduler_advisor.window import Window
from scheduler_advisor.withheld import WithheldError
from scheduler_advisor.workers import CancelledError


class RunState(StrEnum):
    """LOST: the service ended while it worked; nothing of it was kept."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


# Where each stage begins and ends in the whole, from how long they took on a month of 100,000 jobs.
STAGES = {
    "whatif": {"read": (0, 0.1), "compile": (0, 0), "calibrate": (0.1, 0.5), "replay": (0.5, 1.0)},
    "advice": {"ledger": (0, 0.05), "read": (0.05, 0.1), "compile": (0, 0), "calibrate": (0.1, 0.3),
               "changes": (0.3, 0.65), "pairs": (0.65, 0.78), "whole": (0.78, 0.82),
               "boundary": (0.82, 0.95), "report": (0.95, 1.0)},
}  # fmt: skip
_UNCOUNTED = 0.5  # of a stage that does not say how much it has to do


@dataclass(slots=True)
class Run:
    """``kind``: whatif or advice. ``done`` of ``total`` steps of the ``stage``; total 0 = unknown.
    ``part`` of ``parts``: clusters that go through all stages one after another. ``result`` may
    stand before the end (`answer`): then more of it is to come. ``withheld``: it failed because too
    little is known."""

    run_id: str
    kind: str
    cluster: str | None
    window: Window
    started_at: datetime
    state: RunState = RunState.RUNNING
    stage: str = "read"
    done: int = 0
    total: int = 0
    part: int = 0
    parts: int = 1
    result: dict[str, Any] | None = None
    error: str | None = None
    withheld: WithheldError | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    answered: threading.Event = field(default_factory=threading.Event)

    def tell(self, stage: str, done: int = 0, total: int = 0) -> None:
        """It has come this far; CancelledError where somebody has asked it to stop."""
        self.stage, self.done, self.total = stage, done, total
        if self.stop.is_set():
            raise CancelledError("cancelled")

    def answer(self, result: dict[str, Any]) -> None:
        """What was asked for is known; the work goes on with what belongs to it."""
        self.result = result
        self.answered.set()

    @property
    def share(self) -> float:
        """How much of the whole is done, 0 to 1; it may stand still, and does not go back within
        a cluster."""
        if self.state is RunState.DONE:
            return 1.0
        low, high = STAGES.get(self.kind, {}).get(self.stage, (0.0, 1.0))
        inside = self.done / self.total if self.total else _UNCOUNTED if self.done else 0.0
        return (self.part + low + (high - low) * min(inside, 1.0)) / self.parts

    def as_json(self) -> dict[str, Any]:
        """What a page or a client needs to follow it."""
        return {
            "run_id": self.run_id, "kind": self.kind, "cluster": self.cluster,
            "window": {"since": _iso(self.window.since), "until": _iso(self.window.until)},
            "started_at": _iso(self.started_at), "state": self.state.value, "stage": self.stage,
            "done": self.done, "total": self.total, "share": round(self.share, 3),
            "result": self.result, "error": self.error,
        }  # fmt: skip


def _iso(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
