"""The plain driver told slowly: second by second, from docs/policies.md and
docs/simulator-parts.md. Shares no code with the engine; what is free, held, promised and owed is
counted anew from the jobs that lie on the nodes. One set of competing jobs, and no placement by the
network."""

from __future__ import annotations

from fractions import Fraction

from telling_jobs import Job
from telling_moves import Moves
from telling_network import Network
from telling_parts import Parts, slices_of
from telling_pass import Passes
from telling_room import Room
from telling_stops import Stops

GPU = 1000
HOUR = 3600
KIB = 1 << 20


class World(Parts, Network, Room, Passes, Stops, Moves):
    """One replay."""

    def __init__(self, tree, jobs, cluster, policy):
        self.tree, self.table, self.cluster, self.policy = tree, jobs, cluster, policy
        self.nodes = range(len(cluster))
        self.down = [0] * len(cluster)
        self.jobs = [
            Job(at, int(jobs.run[at]), int(jobs.run[at]), int(jobs.checkpoint_every[at]),
                int(jobs.checkpoint_cost[at]), int(jobs.restore_cost[at]) + self.reading(at))
            for at in range(len(jobs))
        ]  # fmt: skip
        self.queue = []
        self.claims = {}  # job -> (its pieces, those who leave for it, believed end)
        self.stopped = []
        self.now = 0
        self.hour, self.in_hour, self.by_team = -1, 0, {}
        self.spared = False  # by a guard that is counted by the hour
        self.moved_at = -(1 << 60)
        self.standing = jobs.priority.tolist()
        self.by_card = bool(jobs.gpu_milli.any())
        self.slices = [slices_of(model) for model in cluster.gpu_model]
        self.cut = [[[] for _ in range(int(gpus))] for gpus in cluster.gpus]
        self.best = {}
        self.sizes()

    # Time

    def run(self, until):
        outside = [
            (at, kind, self.cluster.index[one.node])
            for one in self.cluster.outages
            for at, kind in (
                (one.down_at, "fail" if one.kind == "fail" else "drain"),
                (one.up_at, "up"),
            )
            if at is not None
        ]
        for self.now in range(until):
            self.count()
            self.tree.second(self.now)
            happens = [self.ends(), self.leavings(), self.outer(outside), self.arrivals(),
                       self.expiries(), self.clocks()]  # fmt: skip
            if any(happens):
                if self.queue:
                    self.one_pass()
                self.grow()
                if self.tidy() and self.queue:
                    self.one_pass()
            for job in self.running():
                if job.state == "writes":
                    continue
                if job.pause:
                    job.pause -= 1
                else:
                    job.left -= self.speed(job)
            self.write()

    def ends(self):
        over = []
        for job in self.running():
            until = self.serves_until(job.at)
            ended = job.state == "runs" and job.left <= 0 and not job.pause
            if ended if until is None else self.now >= until:
                over.append(job)
        for job in over:
            job.overhead += job.reads + job.writes * job.write
            job.todo = 0
            self.leave(job, "over")
            job.end = self.now
        return bool(over)

    def leave(self, job, to):
        """It holds nothing any more, unless its room is kept for somebody."""
        job.end, job.until = self.now, None
        job.nodes = [piece.node for piece in job.pieces]
        if job.tells is not None:
            job.state = "gone"
            job.ended = to == "over"
        else:
            job.state = to
            job.pieces = []

    def settle(self, job, mode):
        """The attempt goes no further."""
        progress, safe = job.achieved()
        worked = int(job.work - job.left)
        job.overhead += worked - progress + min(self.now - job.began, job.restoring)
        if mode == "scratch":
            job.lost += progress + job.run - job.todo
            job.todo = job.run
            return
        safe = progress if mode == "checkpoint" else safe
        job.lost += progress - safe
        job.todo -= safe

    def leavings(self):
        """Grace ends, checkpoints are written, rooms change hands."""
        part, some = self.policy.eviction, False
        for job in self.jobs:
            if job.until is not None and job.until <= self.now and job.state == "runs":
                some = True
                self.settle(job, part.mode)
                if part.mode == "checkpoint" and part.gib_per_gpu:
                    job.state, job.kib, job.until, job.since = (
                        "writes",
                        self.kib_of(job.at),
                        None,
                        self.now,
                    )
                else:
                    self.leave(job, "stopped")
        for job in self.jobs:
            if job.state == "writes" and job.kib <= 0:
                some = True
                job.overhead += self.now - job.since
                self.leave(job, "stopped")
        for job in sorted(self.claims, key=lambda one: one.at):
            pieces, leaving, _ = self.claims[job]
            if all(other.state == "gone" for other in leaving):
                some = True
                del self.claims[job]
                for other in leaving:
                    other.tells, other.pieces = None, []
                    other.state = "over"
                    if not other.ended:
                        self.wait(other)
                until = self.serves_until(job.at)
                if until is not None and until <= self.now:
                    job.state = "expired"  # nobody wants the replica any more
                else:
                    self.begin(job, pieces)
        return some

    def write(self):
        writers = [job for job in self.jobs if job.state == "writes"]
        for job in writers:
            job.kib -= max(1, self.policy.eviction.storage_gib_s * KIB // len(writers))

    def outer(self, outside):
        due = sorted(one for one in outside if one[0] == self.now)
        order = {"up": 0, "fail": 1, "drain": 2}
        for _, kind, node in sorted(due, key=lambda one: (order[one[1]], one[2])):
            self.down[node] += -1 if kind == "up" else 1
            if kind == "fail":
                for job in sorted(self.running(), key=lambda one: one.at):
                    if any(piece.node == node for piece in job.pieces):
                        self.settle(job, "requeue")
                        self.leave(job, "stopped")
                        self.wait(job)
        edges = {at for rule in self.cluster.reservations for at in (rule.start_at, rule.end_at)}
        return bool(due) or self.now in edges

    def arrivals(self):
        some = False
        for job in self.jobs:
            parents = [p for c, p in self.table.parent_of.tolist() if c == job.at]
            ready = all(self.jobs[p].todo == 0 and self.jobs[p].end >= 0 for p in parents)
            if job.state == "away" and self.table.eligible[job.at] <= self.now and ready:
                self.wait(job)
                some = True
        return some

    def expiries(self):
        gone = [
            job for job in self.queue if (until := self.serves_until(job.at)) is not None
            and until <= self.now
        ]  # fmt: skip
        for job in gone:
            self.queue.remove(job)
            job.state = "expired"
        return bool(gone)

    def clocks(self):
        """Instants at which nothing happens, but somebody may be stopped at last, or a pass of
        moves is due."""
        part, running = self.policy.eviction, self.running()
        some = self.spared and bool(running) and self.now % HOUR == 0
        policy = self.policy
        stops = policy.preemption != "none" or policy.quota.reclaim != "none"
        for job in running if stops or policy.defrag.kind == "pending" else ():
            grown = part.min_run_s and job.began + part.min_run_s == self.now
            some = some or (grown and self.may_stop(job.at) and job.tells is None)
        return some or (self.policy.defrag.kind == "hours" and bool(running) and self.on_the_hour())

    def on_the_hour(self):
        hours = [int(one) for one in self.policy.defrag.hours.split("|") if one]
        return self.now % HOUR == 0 and self.now // HOUR % 24 in hours

    def wait(self, job):
        job.state = "waits"
        self.queue.append(job)
        self.queue.sort(key=lambda one: self.key(one.at))

    def begin(self, job, pieces):
        if job in self.queue:
            self.queue.remove(job)
        job.state, job.pieces, job.began, job.resized = "runs", pieces, self.now, self.now
        job.work = job.whole
        job.left, job.restoring = Fraction(job.work), job.reads
        job.pause = job.reads + self.lie(job, pieces)
        job.starts.append(self.now)
        job.nodes = [piece.node for piece in pieces]
