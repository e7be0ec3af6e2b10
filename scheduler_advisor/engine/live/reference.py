"""The general driver told slowly, from the design page and not from the kernels.

At each instant (`reference_run.py`): ends of attempts, ends of writes, starts of those whose
victims have left, outside events, arrivals, then one pass (`reference_pass.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler_advisor.engine.limits import Limit
from scheduler_advisor.engine.live.reference_priority import multifactor_key, predicted
from scheduler_advisor.engine.live.reference_tree import (
    DECAY_ONE,
    Node,
    used_at,
)
from scheduler_advisor.engine.live.settings import Eligible, Rank
from scheduler_advisor.engine.policy import Order, Policy
from scheduler_advisor.engine.reference import (
    Running,
    World,
    order_key,
    size_milli,
)
from scheduler_advisor.engine.reference_world import FULL, Held, Job, Placed, Space

HOUR_S = 3600
KIB = 1 << 20  # KiB in a GiB


@dataclass
class Claim:
    """A job whose room is being made: where it will run, whom it waits for."""

    job: Job
    placed: Placed
    victims: list[Running]
    extras: list[tuple[int, Held]]
    believed: int
    left: int


@dataclass
class LiveWorld(World):
    """The world of reference.py, with queues, evictions and claims."""

    nodes: dict[str | None, Node] = field(default_factory=dict)
    leaf: list[str] = field(default_factory=list)
    keys: dict[int, int] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    evicted: dict[int, Claim] = field(default_factory=dict)
    for_nobody: set[int] = field(default_factory=set)
    fallen: set[int] = field(default_factory=set)
    stake: dict[int, int] = field(default_factory=dict)
    natural: dict[int, int] = field(default_factory=dict)
    writers: dict[int, int] = field(default_factory=dict)
    written_at: int = 0
    pinned: dict[int, Placed] = field(default_factory=dict)
    stopped: list[Job] = field(default_factory=list)
    plans: list[tuple[set[int], int, int]] = field(default_factory=list)
    by: dict[int, int] = field(default_factory=dict)
    asked_at: dict[int, int] = field(default_factory=dict)
    ended: list[int] = field(default_factory=list)
    hour: int = -1
    hour_count: int = 0
    budget_out: bool = False
    blocked: bool = False

    # -- sizes and standing -----------------------------------------------------------------

    def size(self, job: Job) -> int:
        return size_milli(self.jobs, job.index)

    def node(self, job: Job) -> Node:
        return self.nodes[self.leaf[job.index]]

    def holding_jobs(self) -> list[Job]:
        """Jobs that count as holding: running, being stopped, and those whose room is made."""
        return [run.job for run in self.running] + [claim.job for claim in self.claims]

    def held(self, node: Node) -> int:
        return sum(self.size(job) for job in self.holding_jobs() if node in self.node(job).path())

    def held_of(self, node: Node, column: str) -> int:
        """CPU or memory held below the node."""
        total = 0
        for job in self.holding_jobs():
            if node in self.node(job).path():
                total += sum(getattr(need, column) for need in job.needs)
        return total

    def waiting_milli(self, node: Node) -> int:
        return sum(self.size(job) for job in self.queue if node in self.node(job).path())

    def attained(self, job: Job, until: int) -> int:
        """Milli-GPU-seconds that the job has held."""
        held = job.run - job.left + self.lost[job.index] + self.overhead[job.index]
        running = [run for run in self.running if run.job is job]
        if running:
            held += until - running[0].start
        return held * self.size(job)

    def level(self, job: Job, until: int) -> int:
        levels = self.policy.ordering.levels()
        return sum(self.attained(job, until) >= one * 1000 for one in levels)

    def standing(self, job: Job) -> int:
        """The higher, the more important."""
        if self.policy.order is Order.LAS and self.policy.ordering.levels():
            return -self.level(job, self.now)
        if self.policy.eviction.by is Rank.TIER:
            return -order_key(self.jobs, self.cluster, Policy(), job.index)[0]
        return int(self.jobs.priority[job.index])

    def stoppable(self, job: Job) -> bool:
        if self.policy.eviction.eligible is Eligible.ALL:
            return True
        return bool(self.jobs.preemptible[job.index])

    def used(self, node: Node) -> int:
        fair = self.policy.fair
        decay = DECAY_ONE
        if fair.half_life_s:
            decay = int(DECAY_ONE * 0.5 ** (fair.period_s / fair.half_life_s))
        return used_at(node, self.now // fair.period_s, fair.period_s, decay)

    def count(self) -> None:
        """Notes what every queue holds from now on."""
        for node in self.nodes.values():
            held = self.held(node)
            if not node.history or node.history[-1][1] != held:
                node.history.append((self.now, held))

    # -- the order --------------------------------------------------------------------------

    def enqueue(self, job: Job) -> None:
        """The job waits; what its place depends on is settled now, save multifactor."""
        order = self.policy.order
        if order is Order.SJF_PREDICTED:
            self.keys[job.index] = predicted(self, job)
        elif order is Order.LAS:
            levels = self.policy.ordering.levels()
            key = self.level(job, self.now) if levels else self.attained(job, self.now) // 1000
            self.keys[job.index] = key
        self.queue.append(job)

    def job_key(self, job: Job) -> tuple[int, int, int]:
        """Smaller is earlier within a line."""
        order = self.policy.order
        static = order if order in _STATIC else Order.FIFO
        plain = order_key(self.jobs, self.cluster, Policy(order=static), job.index)
        key = self.keys.get(job.index, plain[1])
        if order is Order.MULTIFACTOR:
            key = multifactor_key(self, job)
        return plain[0], key, job.index

    # -- who may start ----------------------------------------------------------------------

    def usable(self, job: Job, at: int) -> dict[int, Space]:
        found = super().usable(job, at)
        for nodes, since, until in self.plans:
            if at < until and at + job.limit > since:
                found = {node: space for node, space in found.items() if node not in nodes}
        return found

    def free(self) -> int:
        return sum(sum(space.gpus) for space in self.up().values())

    def admits(self, job: Job) -> bool:
        """Do the maxima of its queues, and what others keep for themselves, let the job start?"""
        size, leaf = self.size(job), self.node(job)
        for node in leaf.path():
            if node.maximum is not None and self.held(node) + size > node.maximum:
                return False
        if self.held(leaf) + size <= leaf.guarantee:
            return True
        kept = sum(
            max(0, node.guarantee - node.rule.lend * 1000 - self.held(node))
            for node in self.nodes.values()
            if not node.children and node is not leaf and node.rule.lend is not None
        )
        return kept == 0 or self.free() - size >= kept

    def _over(self, limit: Limit, job: Job) -> bool:
        if not self._bound(limit, job):
            return False
        same = [other for other in self.holding_jobs() if self._together(limit, other, job)]
        size = self.size(job) + sum(self.size(other) for other in same)
        if limit.max_gpus is not None and size > limit.max_gpus * FULL:
            return True
        return limit.max_jobs is not None and len(same) + 1 > limit.max_jobs

    # -- what happens -----------------------------------------------------------------------

    def _costs(self, job: Job) -> tuple[int, int, int, int]:
        every, write, restore, writes = super()._costs(job)
        part = self.policy.eviction
        if job.left < job.run and part.gib_per_gpu:
            restore += -(-self.kib(job) // (part.storage_gib_s * KIB))
        return every, write, restore, writes

    def told_to_leave(self, run: Running) -> bool:
        return run.job.index in self.evicted or run.job.index in self.for_nobody

    def kib(self, job: Job) -> int:
        return max(1, self.size(job) * self.policy.eviction.gib_per_gpu * KIB // 1000)

    def start(self, job: Job, placed: Placed) -> None:
        self.pinned.pop(job.index, None)
        super().start(job, placed)
        self.count()

    def complete(self, run: Running) -> None:
        _, write, restore, writes = self._costs(run.job)
        self.overhead[run.job.index] += restore + writes * write
        run.job.left = 0
        run.job.ends.append(self.now)
        self.ended.append(run.job.index)
        self.leave(run)

    def leave(self, run: Running) -> None:
        """The attempt is over. Its room is free, or kept for whom it was made."""
        self.running.remove(run)
        if run.job.index in self.evicted:
            self.evicted[run.job.index].left -= 1
        else:
            self.for_nobody.discard(run.job.index)
            for node, held in run.placed:
                self.spaces[node].add(held, +1)
        self.count()


_STATIC = (Order.FIFO, Order.PRIORITY, Order.LARGEST_FIRST, Order.SJF_LIMIT, Order.SJF_TRUE)
