"""What an attempt has to do, and what a stop leaves of it: the rules of `steps.py`, in plain
numbers."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_advisor.engine.live.settings import Stop


@dataclass(slots=True)
class Progress:
    """A job's accounts over all attempts, in seconds."""

    run: int
    left: int
    every: int
    write: int
    restore: int
    lost: int = 0
    overhead: int = 0
    last_work: int = 0  # what the last attempt takes at speed 1

    @property
    def writes(self) -> int:
        """Checkpoints still to write; none at the very end."""
        return (self.left - 1) // self.every if self.every and self.left else 0

    @property
    def work(self) -> int:
        """Seconds of this attempt at speed 1, the restore not in it."""
        return self.left + self.writes * self.write

    @property
    def restoring(self) -> int:
        """Paid only where a checkpoint has kept something."""
        return self.restore if self.left < self.run else 0

    def finish(self) -> None:
        """The attempt came to its end."""
        self.overhead += self.restoring + self.writes * self.write
        self.left = 0

    def stop(self, elapsed: int, worked: int, mode: Stop = Stop.REQUEUE) -> None:
        """Stopped after `elapsed` seconds, of which `worked` were work: what the last checkpoint
        kept is done, the rest of it lost; see preemption.mode."""
        done, saved = self._done(worked)
        self.overhead += worked - done + min(elapsed, self.restoring)
        if mode is Stop.SCRATCH:
            self.lost += done + self.run - self.left
            self.left = self.run
            return
        if mode is Stop.CHECKPOINT:
            saved = done
        self.lost += done - saved
        self.left -= saved

    def would_lose(self, worked: int, mode: Stop) -> int:
        """Seconds of work that stopping it now would cost."""
        if mode in (Stop.CHECKPOINT, Stop.SUSPEND):
            return 0
        done, saved = self._done(worked)
        return done + self.run - self.left if mode is Stop.SCRATCH else done - saved

    def _done(self, worked: int) -> tuple[int, int]:
        """Of so many seconds of an attempt, what was progress and what a checkpoint has of it."""
        saved, done = 0, worked
        if self.every:
            cycle = self.every + self.write
            cycles = min(self.writes, worked // cycle)
            since = worked - cycles * cycle
            saved = cycles * self.every
            done = saved + (since if cycles == self.writes else min(since, self.every))
        return done, saved
