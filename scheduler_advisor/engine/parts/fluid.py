"""The driver for policies under which jobs change while they run: moved together, resized, sharing
a GPU. Plain Python over objects: exact and slow (thousands of jobs a second).

At each instant: ends, nodes that fail, drain or come back, arrivals, replicas that are no longer
wanted, then one pass in queue order, resizes, and a pass of moves where one is due.
"""

from __future__ import annotations

from bisect import insort
from heapq import heappop, heappush

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.errors import EngineError
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.live.settings import Stop
from scheduler_advisor.engine.parts.ask import Ask, ask_of, lift, size_of
from scheduler_advisor.engine.parts.attempt import Progress
from scheduler_advisor.engine.parts.family import Family
from scheduler_advisor.engine.parts.floor import Piece, empty_floor
from scheduler_advisor.engine.parts.fluid_outside import Outside
from scheduler_advisor.engine.parts.fluid_queues import Queues, needs_queues
from scheduler_advisor.engine.parts.fluid_speed import Speeds
from scheduler_advisor.engine.parts.fluid_stop import Stops
from scheduler_advisor.engine.parts.levels import tree_of
from scheduler_advisor.engine.parts.places import islands_of
from scheduler_advisor.engine.parts.runner import Runner
from scheduler_advisor.engine.parts.settings import Elastic
from scheduler_advisor.engine.parts.windows import Windows
from scheduler_advisor.engine.policy import Backfill, Placement, Policy

NEVER = 1 << 62


class Fluid(Outside):
    """One replay. `queue_key[j]`: smaller is earlier; `nodes[j]`: where the job may run (none: it
    can never run); `needs[j]`: the level it must stay within."""

    def __init__(
        self,
        jobs: Jobs,
        cluster: Cluster,
        policy: Policy,
        queue_key: list[tuple[int, ...]],
        nodes: list[tuple[int, ...]],
        needs: list[str],
    ) -> None:
        self.jobs, self.cluster, self.policy = jobs, cluster, policy
        self.key = queue_key
        by_network = policy.placement is Placement.TOPOLOGY
        islands = islands_of(cluster).tolist() if by_network else None
        self.floor, self.tree = empty_floor(cluster, islands), tree_of(cluster)
        self.windows = Windows(jobs, cluster)
        size = len(jobs)
        kind = policy.sharing.kind
        self.asks = [ask_of(jobs, job, nodes[job], kind, needs[job]) for job in range(size)]
        self.progress = [
            Progress(
                int(jobs.run[job]),
                int(jobs.run[job]),
                int(jobs.checkpoint_every[job]),
                int(jobs.checkpoint_cost[job]),
                int(jobs.restore_cost[job]),
            )
            for job in range(size)
        ]
        self.speeds = Speeds(jobs, cluster, policy, self.floor, self.tree)
        self.running: dict[int, Runner] = {}
        self.queue: list[int] = []
        self.ends: list[tuple[int, int, int]] = []
        self.now = 0
        self.first, self.last_start, self.end = [-1] * size, [-1] * size, [-1] * size
        self.starts, self.migrations, self.resizes = [0] * size, [0] * size, [0] * size
        self.places: list[list[int]] = [[] for _ in range(size)]
        self.over = [False] * size
        self.expired = [False] * size
        self.held_milli = 0  # now
        self.down_free = 0
        self.held_sum = self.idle_sum = self.down_sum = self.queue_sum = 0
        self.segments = 0  # the same as held_sum, job by job
        self.paused = 0
        self.events = self.passes = self.examined = self.move_passes = 0
        self.outside = self._outside()
        self.moved_at = -NEVER
        self.began: int | None = None
        self.version = 0
        self.component = [0] * size
        self.kinds = [0] * len(cluster)
        self.services = bool(jobs.service.any())
        self.kept_milli = self.kept_sum = self._lifted = 0
        self.stopped: list[int] = []  # in this pass; they queue at its end
        self.general = needs_queues(cluster, policy) or len(jobs.parent_of) > 0
        self._queues = Queues(jobs, cluster, policy, self._sizes()) if self.general else None
        self._stops = Stops(self) if self.general else None
        if self._stops is not None:
            for job, progress in enumerate(self.progress):
                progress.restore += self._stops.restore_s(job)

    def _sizes(self) -> list[int]:
        kind = self.policy.sharing.kind
        return [
            size_of(ask, int(self.jobs.gpu_milli[ask.job]), self.floor, kind) for ask in self.asks
        ]

    # Time

    def run(self, unplaceable: list[bool]) -> None:
        """Replays all jobs."""
        from scheduler_advisor.engine.parts.fluid_moves import move_together, next_moves

        jobs = self.jobs
        family = Family(jobs)
        happened = 0
        while True:
            at = self._next_end()
            if self._stops is not None:
                at = min(at, self._stops.next())
            at = min(at, family.next())
            if happened < len(self.outside):
                at = min(at, self.outside[happened][0])
            at = min(at, self._next_expiry())
            if self.running or self.queue or family.next() < NEVER:
                at = min(at, next_moves(self))
            if at >= NEVER:
                break
            self._pass_time(at)
            if self._stops is not None:
                self._stops.write_on()
            family.ended(self._end_all(), self.now)
            if self._stops is not None:
                self._stops.happen()
            while happened < len(self.outside) and self.outside[happened][0] <= at:
                self._happen(*self.outside[happened][1:])
                happened += 1
            for job in family.arrived(at):
                if not unplaceable[job]:
                    self.enqueue(job)
                self.events += 1
            self._expire()
            if self.queue:
                self.one_pass()
            if self.policy.elastic.kind is Elastic.RESIZE:
                from scheduler_advisor.engine.parts.fluid_resize import grow

                grow(self)
            move_together(self)
        if self.segments != self.held_sum:
            raise EngineError(
                f"parts: GPU-seconds do not add up: {self.segments} by job, {self.held_sum} by time"
            )

    def _pass_time(self, at: int) -> None:
        if self.began is None:
            self.began = self.now = at
        passed = at - self.now
        self.held_sum += self.held_milli * passed
        self.down_sum += self.down_free * passed
        self.idle_sum += self.free_milli() * passed
        self.kept_sum += self.kept_milli * passed
        self.queue_sum += len(self.queue) * passed
        self.now = at

    def _next_end(self) -> int:
        while self.ends:
            at, job, version = self.ends[0]
            runner = self.running.get(job)
            if runner is not None and runner.version == version:
                return at
            heappop(self.ends)
        return NEVER

    def _end_all(self) -> list[int]:
        ended = []
        while self._next_end() <= self.now:
            _, job, _ = heappop(self.ends)
            runner = self.running[job]
            runner.settle(self.now)
            self.progress[job].last_work = self.progress[job].work + self.progress[job].restoring
            self.progress[job].finish()
            self.over[job] = True
            self.leave(job)
            self.events += 1
            ended.append(job)
        return ended

    # The queue

    def enqueue(self, job: int) -> None:
        """The job waits, in its place."""
        insort(self.queue, job, key=lambda one: self.key[one])
        if self._queues is not None:
            self._queues.waits(job, 1)

    def dequeue(self, job: int) -> None:
        """The job waits no longer."""
        self.queue.remove(job)
        if self._queues is not None:
            self._queues.waits(job, -1)

    def one_pass(self) -> None:
        """Starts what may start, in queue order; each set of competing jobs has its own head."""
        if self.general:
            from scheduler_advisor.engine.parts.fluid_pass import general_pass

            general_pass(self)
            return
        self.passes += 1
        behind: dict[int, int] = {}
        failed: set[tuple[object, ...]] = set()
        depth, most = self.policy.backfill_depth, self.policy.backfill_max_limit_s
        for job in list(self.queue):
            part = self.component[job]
            place_in_line = behind.get(part, 0)
            if place_in_line:
                if self.policy.backfill is Backfill.NONE or (depth and place_in_line > depth):
                    continue
                behind[part] += 1
                if most and self.jobs.limit[job] > most:
                    continue
            self.examined += 1
            if self.shape(job) not in failed and self._start(job, head=place_in_line == 0):
                self.dequeue(job)
                failed.clear()
                continue
            failed.add(self.shape(job))
            behind.setdefault(part, 1)

    def shape(self, job: int) -> tuple[object, ...]:
        """Jobs of one shape fit in the same places."""
        ask = self.asks[job]
        bounds = (int(self.jobs.min_tasks[job]), int(self.jobs.max_tasks[job]))
        return (
            ask.tasks, ask.gpus, ask.milli, ask.rest, ask.cpu, ask.mem, ask.latency, ask.nodes,
            ask.exclusive, ask.distinct,
            ask.need, bounds, *self._by_window(job),
        )  # fmt: skip

    def _by_window(self, job: int) -> tuple[object, ...]:
        """Beside reservations it matters how long the job is, too."""
        return (int(self.jobs.limit[job]), self.jobs.reservation[job]) if self.windows.any else ()

    def _start(self, job: int, *, head: bool) -> bool:
        ask = self.asks[job]
        pieces = self.find(ask, ask.tasks)
        tasks = ask.tasks
        if pieces is None and self.policy.elastic.kind is Elastic.RESIZE:
            from scheduler_advisor.engine.parts.fluid_resize import start_smaller

            found = start_smaller(self, ask, head)
            if found is not None:
                tasks, pieces = found
        if pieces is None:
            return False
        self.begin(ask, tasks, pieces)
        return True

    # Jobs on the floor

    def begin(self, ask: Ask, tasks: int, pieces: list[Piece]) -> None:
        """The job's tasks are placed: it runs from now."""
        job, progress = ask.job, self.progress[ask.job]
        recut = self.rest_s(pieces)
        runner = Runner(
            ask,
            tasks,
            pieces,
            self.now,
            progress.work,
            self.now + progress.restoring + recut,
            self.now,
            resized_at=self.now,
            until=self._wanted_until(job),
        )
        runner.left = runner.left + progress.work
        self.running[job] = runner
        if self.starts[job] == 0:
            self.first[job] = self.now
        self.starts[job] += 1
        self.last_start[job] = self.now
        self.places[job] = [piece.node for piece in pieces]
        self.paused += recut * self.speeds.held_in_all(runner)
        self._count(runner, 1)
        self.retime(job)
        self._neighbours(runner)

    def retime(self, job: int) -> None:
        """The job's speed and end as they follow from where it lies now."""
        runner = self.running[job]
        runner.run_at(self.now, self.speeds.of(runner))
        self.version += 1  # no entry of an earlier attempt has it
        runner.version = self.version
        heappush(self.ends, (max(runner.end, self.now), job, self.version))

    def stop(self, job: int, mode: Stop = Stop.REQUEUE) -> None:
        """The attempt is over before its end; what it keeps is as preemption.mode says."""
        self.settle(job, mode)
        self.leave(job)

    def settle(self, job: int, mode: Stop) -> None:
        """Counts what the attempt, which goes no further, has achieved."""
        runner = self.running[job]
        runner.settle(self.now)
        self.progress[job].stop(self.now - runner.started, runner.done, mode)

    def leave(self, job: int) -> None:
        """The attempt is over; its room is free, or kept for whom it was made."""
        runner = self.running[job]
        self._count(runner, -1)
        held = self.held_by(job)
        if self._stops is None or not self._stops.leaves(job, runner.pieces, held):
            lift(self.floor, runner.pieces, job)
        del self.running[job]
        self.end[job] = self.now
        self._neighbours(runner)

    def _count(self, runner: Runner, sign: int) -> None:
        """Counts what the job holds, from now or up to now."""
        held = self.speeds.held_in_all(runner)
        self.held_milli += sign * held
        if self._queues is not None:
            self._queues.holds(runner.ask.job, self.counted(runner.ask.job), sign, self.now)
        for piece in runner.pieces:
            if self.floor[piece.node].down:
                self.down_free -= sign * self.speeds.held_milli(runner.ask, piece)
        if sign > 0:
            runner.parts["since"] = self.now
        else:
            self.segments += held * (self.now - runner.parts["since"])

    def replace(self, job: int, tasks: int, pieces: list[Piece], pause_s: int) -> None:
        """The job goes on with other pieces, which it holds already, after a pause."""
        runner = self.running[job]
        self._count(runner, -1)
        runner.tasks, runner.pieces = tasks, pieces
        self._count(runner, 1)
        runner.pause(self.now, pause_s)
        self.paused += pause_s * self.speeds.held_in_all(runner)
        self.places[job] = [piece.node for piece in pieces]
        self.retime(job)

    def _neighbours(self, runner: Runner) -> None:
        """Those who share a GPU with the job run at another speed from now."""
        for other in sorted(self.speeds.beside(runner)):
            if other in self.running and other != runner.ask.job:
                self.retime(other)
