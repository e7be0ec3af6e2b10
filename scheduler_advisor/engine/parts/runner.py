"""One attempt of a job whose speed changes while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from scheduler_advisor.engine.parts.ask import Ask
from scheduler_advisor.engine.parts.floor import Piece


@dataclass(slots=True)
class Runner:
    """`left`: seconds of work at speed 1, checkpoint writes in it. Nothing is done before
    `begin_at`: a restore, a move, a resize, a GPU cut anew. `since`: `left` is true then."""

    ask: Ask
    tasks: int
    pieces: list[Piece]
    started: int
    work: int
    begin_at: int
    since: int
    left: Fraction = Fraction(0)
    speed: Fraction = Fraction(1)
    network: Fraction = Fraction(1)
    end: int = 0
    version: int = 0
    resized_at: int = 0
    until: int | None = None
    parts: dict[str, int] = field(default_factory=dict)

    def settle(self, now: int) -> None:
        """Counts what was done up to now."""
        worked = now - max(self.since, self.begin_at)
        if worked > 0:
            self.left = max(Fraction(0), self.left - worked * self.speed)
        self.since = now

    def pause(self, now: int, seconds: int) -> None:
        """Nothing is done for so long from now (or from the end of a pause that goes on)."""
        self.settle(now)
        self.begin_at = max(self.begin_at, now) + seconds

    def run_at(self, now: int, speed: Fraction) -> None:
        """From now on at this speed; `end` follows."""
        self.settle(now)
        self.speed = speed
        self.ends()

    def ends(self) -> None:
        """When it ends if nothing changes."""
        quotient = self.left / self.speed
        self.end = max(self.since, self.begin_at) + -(-quotient.numerator // quotient.denominator)
        if self.until is not None:
            self.end = self.until

    @property
    def done(self) -> int:
        """Whole seconds of this attempt's work that are done."""
        return int(self.work - self.left)
