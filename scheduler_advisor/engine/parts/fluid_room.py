"""Room in the parts' driver: what is free, what jobs hold, and what would be if some were gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.parts.ask import Ask, Guard, lift, place
from scheduler_advisor.engine.parts.attempt import Progress
from scheduler_advisor.engine.parts.floor import Floor, Piece, retake
from scheduler_advisor.engine.parts.fluid_queues import Queues
from scheduler_advisor.engine.parts.fluid_speed import Speeds
from scheduler_advisor.engine.parts.fluid_stop import Stops
from scheduler_advisor.engine.parts.levels import Tree
from scheduler_advisor.engine.parts.mig import WHOLE
from scheduler_advisor.engine.parts.runner import Runner
from scheduler_advisor.engine.parts.windows import Windows
from scheduler_advisor.engine.policy import Policy


class Room:
    """The part of a replay that counts room; `Fluid` sets all of it."""

    jobs: Jobs
    cluster: Cluster
    policy: Policy
    floor: Floor
    tree: Tree
    windows: Windows
    asks: list[Ask]
    progress: list[Progress]
    speeds: Speeds
    running: dict[int, Runner]
    now: int
    held_milli: int
    kept_milli: int
    down_free: int
    _lifted: int
    _queues: Queues | None
    _stops: Stops | None

    @property
    def queues(self) -> Queues:
        """Where queues, quotas or preemption matter."""
        assert self._queues is not None
        return self._queues

    @property
    def stops(self) -> Stops:
        """The same."""
        assert self._stops is not None
        return self._stops

    def free_milli(self) -> int:
        """Thousandths of GPUs that nobody holds, on nodes that are up; of those that are lifted off
        in thought, too."""
        total = self.cluster.total_gpus * WHOLE
        return total - self.held_milli - self.kept_milli - self.down_free + self._lifted

    def headroom_left(self, size: int) -> bool:
        """Would enough GPUs stay free beside so many?"""
        return self.free_milli() - size >= self.cluster.headroom_gpus * WHOLE

    def never_alone(self, job: int) -> bool:
        """Whether a maximum, a limit, its reservation or the headroom keeps it out for ever."""
        total = self.cluster.total_gpus * WHOLE - self.queues.size[job]
        return (
            self.queues.over_a_maximum(job)
            or self.queues.over_a_limit(job)
            or self.windows.never(job)
            or total < self.cluster.headroom_gpus * WHOLE
        )

    def rest_s(self, pieces: Sequence[Piece]) -> int:
        """How long who takes these rests while slices are made or cleared away."""
        recut = any(piece.recut for piece in pieces)
        return self.policy.sharing.reconfigure_s if recut else 0

    def told_to_leave(self, job: int) -> bool:
        """Whether its room is promised to somebody: it goes from where it is, as it is."""
        return self._stops is not None and job in self._stops.claim_of

    def held_by(self, job: int) -> int:
        """Thousandths of GPUs that the running job holds."""
        return self.speeds.held_in_all(self.running[job])

    def counted(self, job: int) -> int:
        """What the running job counts in its queues: what it holds; of nodes that it has to
        itself, what it asks for; of parts of GPUs, what it counted when it was let in."""
        ask = self.asks[job]
        return self.queues.size[job] if ask.exclusive or ask.milli else self.held_by(job)

    def keep(self, milli: int) -> None:
        """So many more are kept for somebody from now on."""
        self.kept_milli += milli

    def lift_off(self, job: int) -> None:
        """The running job is off the floor and off the counts, in thought."""
        lift(self.floor, self.running[job].pieces, job)
        self._lifted += self._up_milli(self.running[job])
        self.queues.holds(job, self.counted(job), -1, self.now)

    def put_back(self, job: int) -> None:
        """It is back."""
        runner = self.running[job]
        for piece in runner.pieces:
            retake(self.floor, piece, job, runner.ask.latency)
        self._lifted -= self._up_milli(runner)
        self.queues.holds(job, self.counted(job), 1, self.now)

    def find(self, ask: Ask, tasks: int, guard: Guard | None = None) -> list[Piece] | None:
        """Puts so many tasks of the job on the floor, on nodes that no reservation of others needs
        before it ends by its limit; or changes nothing."""
        if self.windows.any:
            until = self.now + int(self.jobs.limit[ask.job])
            ask = replace(ask, closed=self.windows.kept_from(ask.job, self.now, until))
        return place(self.floor, ask, tasks, self.policy, self.tree, guard)

    def would_fit(self, job: int) -> list[Piece] | None:
        """Where the job would go now; nothing changes."""
        size, ask = self.queues.size[job], self.asks[job]
        if not self.headroom_left(size) or not self.queues.admits(job, size, self.free_milli()):
            return None
        pieces = self.find(ask, ask.tasks)
        lift(self.floor, pieces or [], job)
        return pieces

    def may_grow(self, job: int, gpus: int, others: int) -> bool:
        """Do quotas let a running job have so many more GPUs, beside `others` handed out just now?
        Those count against it as if they were its own queue's."""
        if self._queues is None:
            return True
        more = (gpus + others) * WHOLE
        return self._queues.admits(job, more, self.free_milli())

    def believed_s(self, job: int) -> int:
        """How long the scheduler believes that an attempt that starts now lasts."""
        progress = self.progress[job]
        return max(int(self.jobs.limit[job]), progress.restoring + progress.work)

    def believed_ends(self) -> list[tuple[int, list[Piece], int]]:
        """When what is on the floor will have ended, its pieces, and what comes free with it."""
        found = []
        for job, runner in self.running.items():
            if job not in self.stops.claim_of:
                end = max(runner.end, runner.started + int(self.jobs.limit[job]))
                found.append((end, runner.pieces, self._up_milli(runner)))
        for claim in self.stops.claims:
            gpus = sum(len(piece.gpus) for piece in claim.pieces)
            found.append((claim.believed, claim.pieces, gpus * WHOLE))
        return found

    def _up_milli(self, runner: Runner) -> int:
        return sum(
            self.speeds.held_milli(runner.ask, piece)
            for piece in runner.pieces
            if not self.floor[piece.node].down
        )
