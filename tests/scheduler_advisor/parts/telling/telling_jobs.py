"""Jobs and what they hold, for the slow telling."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(eq=False)
class Piece:
    """What one task takes of a node."""

    node: int
    gpus: int
    cpu: int
    milli: int = 0  # of its one GPU
    cards: tuple[int, ...] = ()
    slice: tuple | None = None
    recut: bool = False

    @property
    def held(self):
        """Thousandths of GPUs."""
        return self.milli or self.gpus * 1000


@dataclass(eq=False)
class Job:
    """`todo`: work that is not yet safe, in seconds; the rest is of the present attempt."""

    at: int
    run: int
    todo: int
    every: int
    write: int
    restore: int
    pieces: list[Piece] = field(default_factory=list)
    state: str = "away"  # away, waits, runs, writes, gone (its room is kept), over
    left: Fraction = Fraction(0)
    work: int = 0
    pause: int = 0
    restoring: int = 0
    began: int = -1
    resized: int = -1
    tells: Job | None = None  # for whom it was told to leave
    until: int | None = None  # when it has to be gone
    kib: int = 0
    # what is reported
    starts: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    end: int = -1
    lost: int = 0
    overhead: int = 0
    stops: int = 0
    moves: int = 0
    resizes: int = 0
    by: int = 0
    ended: bool = False  # by itself, before it had to
    since: int = 0  # writes

    @property
    def writes(self):
        return (self.todo - 1) // self.every if self.every and self.todo else 0

    @property
    def whole(self):
        """Seconds of an attempt that begins now, writes included."""
        return self.todo + self.writes * self.write

    @property
    def reads(self):
        return self.restore if self.todo < self.run else 0

    def achieved(self):
        """Of the attempt's work so far: progress, and how much of it is safe."""
        worked = int(self.work - self.left)
        if not self.every:
            return worked, 0
        progress, safe = 0, 0
        for _ in range(self.writes):
            if worked < self.every + self.write:
                return progress + min(worked, self.every), safe
            worked -= self.every + self.write
            progress += self.every
            safe += self.every
        return progress + worked, safe
