"""What reaches the parts' driver from outside: nodes, reservations, replicas out of date."""

from __future__ import annotations

from scheduler_advisor.engine.limits import OutageKind
from scheduler_advisor.engine.parts.floor import Piece
from scheduler_advisor.engine.parts.fluid_room import Room
from scheduler_advisor.engine.parts.mig import WHOLE
from scheduler_advisor.engine.parts.runner import Runner

NEVER = 1 << 62
EDGE = 3  # a reservation begins or ends


class Outside(Room):
    """The part of a replay that hears of it; `Fluid` sets all of it and does what follows."""

    queue: list[int]
    events: int
    services: bool
    expired: list[bool]

    def stop(self, job: int) -> None:
        """The attempt is over before its end."""
        raise NotImplementedError

    def enqueue(self, job: int) -> None:
        """The job waits."""
        raise NotImplementedError

    def dequeue(self, job: int) -> None:
        """The job waits no longer."""
        raise NotImplementedError

    def _outside(self) -> list[tuple[int, int, int]]:
        events = []
        for outage in self.cluster.outages:
            node = self.cluster.index[outage.node]
            events.append((outage.down_at, 1 if outage.kind is OutageKind.FAIL else 2, node))
            if outage.up_at is not None:
                events.append((outage.up_at, 0, node))
        events += [(at, EDGE, 0) for at in self.windows.edges()]
        return sorted(events)

    def _happen(self, kind: int, node: int) -> None:
        self.events += 1
        if kind == EDGE:
            return  # a pass follows
        machine = self.floor[node]
        before = self._down_free(node)
        if kind == 0:
            machine.down -= 1
        else:
            machine.down += 1
        self.down_free += self._down_free(node) - before
        if kind == 1:
            for job in sorted(self.running):
                if any(piece.node == node for piece in self.running[job].pieces):
                    self.stop(job)
                    self.enqueue(job)

    def _down_free(self, node: int) -> int:
        """Thousandths of GPUs of a node that is down and nobody holds."""
        machine = self.floor[node]
        if machine.down == 0:
            return 0
        held = sum(
            self._held_of(runner, piece)
            for runner in self.running.values()
            for piece in runner.pieces
            if piece.node == node
        )
        return len(machine.gpus) * WHOLE - held

    def _held_of(self, runner: Runner, piece: Piece) -> int:
        return self.speeds.held_milli(runner.ask, piece)

    def _next_expiry(self) -> int:
        if not self.services:
            return NEVER
        stays = (self._wanted_until(job) for job in self.queue)
        return min((until for until in stays if until is not None), default=NEVER)

    def _wanted_until(self, job: int) -> int | None:
        if not self.jobs.service[job]:
            return None
        return int(self.jobs.submit[job] + self.jobs.run[job])

    def _expire(self) -> None:
        for job in list(self.queue) if self.services else ():
            if self.not_wanted(job):
                self.dequeue(job)
                self.expired[job] = True

    def not_wanted(self, job: int) -> bool:
        """Is it a replica that nobody wants any more?"""
        until = self._wanted_until(job)
        return until is not None and until <= self.now
