"""The simulator as the design page tells it: slow, obvious, and written without the engine.

One loop over instants. At each: completions, node ups and downs, timers, arrivals, then one pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.limits import Limit, OutageKind, Scope
from scheduler_advisor.engine.policy import Backfill, Order, Policy
from scheduler_advisor.engine.reference_alone import never
from scheduler_advisor.engine.reference_holding import held_so_far, release
from scheduler_advisor.engine.reference_passes import compress, run_pass
from scheduler_advisor.engine.reference_world import FULL, Held, Job, Placed, Space, jobs_of
from scheduler_advisor.engine.shapes import fitted

MOST_TURNS = 3  # times that a job gives up while nothing else happens


@dataclass
class Running:
    """An attempt that goes on: when it ends, when the scheduler believes that it ends."""

    job: Job
    start: int
    end: int
    believed: int
    placed: Placed


@dataclass
class World:
    """Everything that a pass may look at, and the ways to change it."""

    jobs: Jobs
    cluster: Cluster
    policy: Policy
    all: list[Job]
    spaces: dict[int, Space]
    now: int = -(1 << 40)
    queue: list[Job] = field(default_factory=list)
    running: list[Running] = field(default_factory=list)
    down: dict[int, int] = field(default_factory=dict)
    planned: dict[int, tuple[int, Placed]] = field(default_factory=dict)
    holders: dict[int, int] = field(default_factory=dict)
    deadlocks: list[tuple[int, int, int]] = field(default_factory=list)
    deadlocked: bool = False
    lost: dict[int, int] = field(default_factory=dict)
    overhead: dict[int, int] = field(default_factory=dict)
    preempted: dict[int, int] = field(default_factory=dict)
    holding: int = 0
    news: int = 0  # what happened, jobs giving up apart
    gave: dict[int, tuple[int, int]] = field(default_factory=dict)
    component: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for job in self.all:
            if job.network is not None:
                job.network.spaces, job.network.down = self.spaces, self.down

    # -- who may start ---------------------------------------------------------------------

    def up(self) -> dict[int, Space]:
        """The nodes that take new tasks."""
        return {node: space for node, space in self.spaces.items() if not self.down.get(node)}

    def usable(self, job: Job, at: int) -> dict[int, Space]:
        """The nodes on which the job could run from `at` for its limit, reservations respected."""
        own = self.jobs.reservation[job.index]
        blocked = {
            self.cluster.index[name]
            for rule in self.cluster.reservations
            if rule.name != own and at < rule.end_at and at + job.limit > rule.start_at
            for name in rule.nodes
        }
        return {
            node: space
            for node, space in self.up().items()
            if node in job.nodes and node not in blocked
        }

    def held_back(self, job: Job) -> bool:
        """Kept from starting by a limit of its own or by its reservation; blocks nobody else."""
        if name := self.jobs.reservation[job.index]:
            rule = next(rule for rule in self.cluster.reservations if rule.name == name)
            if not rule.start_at <= self.now <= rule.end_at - job.limit:
                return True
        return any(self._over(limit, job) for limit in self.cluster.limits)

    def _over(self, limit: Limit, job: Job) -> bool:
        if not self._bound(limit, job):
            return False
        same = [run.job for run in self.running if self._together(limit, run.job, job)]
        size = size_milli(self.jobs, job.index) + sum(
            size_milli(self.jobs, other.index) for other in same
        )
        if limit.max_gpus is not None and size > limit.max_gpus * FULL:
            return True
        return limit.max_jobs is not None and len(same) + 1 > limit.max_jobs

    def _bound(self, limit: Limit, job: Job) -> bool:
        qos, account = self.jobs.qos[job.index], self.jobs.account[job.index]
        first = self.jobs.partitions[job.index].partition("|")[0]
        return (
            limit.qos in (None, qos)
            and (limit.account in (None, account) or account in limit.below)
            and limit.user in (None, self.jobs.user[job.index])
            and limit.partition in (None, first)
            and qos not in limit.but_qos
            and first not in limit.but_partitions
        )

    def _together(self, limit: Limit, one: Job, other: Job) -> bool:
        counts = replace(limit, but_qos=(), but_partitions=())
        if not self._bound(counts, one) or limit.scope is Scope.JOB:
            return False
        if limit.scope is Scope.ALL:
            return True
        column = self.jobs.user if limit.scope is Scope.USER else self.jobs.account
        return column[one.index] == column[other.index]

    def headroom_left(self, job: Job) -> bool:
        """Would enough GPUs stay free beside the job?"""
        free = sum(sum(space.gpus) for space in self.up().values())
        return free - size_milli(self.jobs, job.index) >= self.cluster.headroom_gpus * FULL

    # -- what happens ----------------------------------------------------------------------

    def start(self, job: Job, placed: Placed) -> None:
        """The job runs from now; its tasks are already taken from the nodes."""
        if job.network is not None:
            job.network.stretch(job, placed)
        wall = self._wall(job)
        self.news += 1
        job.starts.append(self.now)
        job.placed = placed
        believed = self.believed(job)
        self.planned.pop(job.index, None)
        self.running.append(Running(job, self.now, self.now + wall, believed, placed))
        self.queue.remove(job)

    def _costs(self, job: Job) -> tuple[int, int, int, int]:
        index = job.index
        every = int(self.jobs.checkpoint_every[index])
        write = int(self.jobs.checkpoint_cost[index])
        restore = int(self.jobs.restore_cost[index]) if job.left < job.run else 0
        writes = (job.left - 1) // every if every and job.left else 0
        return every, write, restore, writes

    def believed(self, job: Job) -> int:
        """When a job that starts now will have ended, as far as the scheduler knows."""
        return self.now + max(job.limit, self._wall(job))

    def _wall(self, job: Job) -> int:
        _, write, restore, writes = self._costs(job)
        return restore + job.left + writes * write

    def complete(self, run: Running) -> None:
        _, write, restore, writes = self._costs(run.job)
        self.overhead[run.job.index] += restore + writes * write
        run.job.left = 0
        self.news += 1
        run.job.ends.append(self.now)
        self._leave(run)
        if self.policy.backfill is Backfill.CONSERVATIVE_COMPRESS:
            compress(self)

    def interrupt(self, run: Running) -> None:
        """Stopped before its end: back to the queue with what its last checkpoint kept."""
        job = run.job
        every, write, restore, writes = self._costs(job)
        worked = max(0, self.now - run.start - restore)
        saved, done = 0, worked
        if every:
            cycles = min(writes, worked // (every + write))
            saved = cycles * every
            done = saved + min(worked - cycles * (every + write), every)
            if cycles == writes:
                done = saved + worked - cycles * (every + write)
        job.placed = []
        self.lost[job.index] += done - saved
        self.overhead[job.index] += self.now - run.start - done
        job.left -= saved
        job.ends.append(self.now)
        self._leave(run)
        self.queue.append(job)
        self.planned.clear()

    def _leave(self, run: Running) -> None:
        self.running.remove(run)
        for node, held in run.placed:
            self.spaces[node].add(held, +1)


def size_milli(jobs: Jobs, index: int) -> int:
    """Thousandths of GPUs that the job asks for in all."""
    task = int(jobs.gpus_per_task[index]) * FULL + int(jobs.gpu_milli[index])
    return int(jobs.tasks[index]) * task + int(jobs.rest_gpus[index]) * FULL


def order_key(jobs: Jobs, cluster: Cluster, policy: Policy, index: int) -> tuple[int, ...]:
    """Smaller is earlier in the queue."""
    asked = {name for name in jobs.partitions[index].split("|") if name}
    tiers = [
        part.tier
        for part in cluster.partitions
        if part.name in asked or (part.default and not asked)
    ]
    rank = {
        Order.FIFO: 0,
        Order.PRIORITY: -int(jobs.priority[index]),
        Order.LARGEST_FIRST: -size_milli(jobs, index),
        Order.SJF_LIMIT: int(jobs.limit[index]),
        Order.SJF_TRUE: int(jobs.run[index]),
    }[policy.order]
    return (-max(tiers, default=0), rank, int(jobs.submit[index]), index)


@dataclass(frozen=True)
class ReferenceOutcome:
    """Per job: first and last start, end (None: not yet), nodes; and what was lost."""

    first_start: list[int | None]
    start: list[int | None]
    end: list[int | None]
    nodes: list[list[int]]
    starts: list[int]
    lost_s: list[int]
    overhead_s: list[int]
    unplaceable: list[int]
    deadlocks: list[tuple[int, int, int]]
    preemptions: list[int]
    holding_gpu_milli_s: int


def reference(jobs: Jobs, cluster: Cluster, policy: Policy) -> ReferenceOutcome:
    """Replays `jobs` on `cluster` under `policy`."""
    jobs = fitted(jobs, int(cluster.gpus.max(initial=0)))
    keys = [order_key(jobs, cluster, policy, index) for index in range(len(jobs))]
    made = jobs_of(jobs, cluster, policy, keys)
    spaces = {
        node: Space(
            [FULL] * int(cluster.gpus[node]),
            int(cluster.cpu_milli[node]),
            int(cluster.mem_mib[node]),
        )
        for node in range(len(cluster))
    }
    world = World(jobs, cluster, policy, made, spaces)
    world.lost = dict.fromkeys(range(len(jobs)), 0)
    world.overhead = dict.fromkeys(range(len(jobs)), 0)
    world.preempted = dict.fromkeys(range(len(jobs)), 0)
    hopeless = [job.index for job in made if never(world, job)]
    able = [job for job in made if job.index not in set(hopeless)]
    world.component = components(able)
    _loop(world, able)
    return ReferenceOutcome(
        [job.starts[0] if job.starts else None for job in made],
        [job.starts[-1] if job.starts and job.left == 0 and job.ends else None for job in made],
        [job.ends[-1] if job.ends and len(job.ends) == len(job.starts) else None for job in made],
        [[node for node, _ in job.placed] for job in made],
        [len(job.starts) for job in made],
        list(world.lost.values()),
        list(world.overhead.values()),
        hopeless,
        world.deadlocks,
        list(world.preempted.values()),
        world.holding,
    )


def components(jobs: list[Job]) -> dict[int, int]:
    """Job -> the set of nodes that it competes for, named by its lowest node: jobs whose nodes
    overlap, directly or through others, share one queue and one head."""
    groups: list[set[int]] = []
    for job in jobs:
        touching = [group for group in groups if group & job.nodes]
        groups = [group for group in groups if not group & job.nodes]
        groups.append(job.nodes.union(*touching))
    return {job.index: min(next(g for g in groups if g & job.nodes)) for job in jobs}


def _loop(world: World, jobs: list[Job]) -> None:
    waiting = {job.index: int(world.jobs.eligible[job.index]) for job in jobs}
    parents: dict[int, set[int]] = {}
    for child, parent in world.jobs.parent_of.tolist():
        parents.setdefault(child, set()).add(parent)
    outages = sorted(_outages(world.cluster))
    ended: set[int] = set()

    def ready() -> list[int]:
        return [index for index in sorted(waiting) if parents.get(index, set()) <= ended]

    while True:
        instants = [waiting[index] for index in ready()]
        instants += [run.end for run in world.running]
        instants += [at for at, *_ in outages]
        instants += [at for at in _edges(world) if at > world.now]
        if not instants:
            break
        world.now = max(world.now, min(instants))
        _complete_all(world, ended)
        while outages and outages[0][0] <= world.now:
            _outage(world, *outages.pop(0)[1:])
        _give_up(world)
        for index in ready():
            if waiting[index] <= world.now:
                world.queue.append(world.all[index])
                world.news += waiting[index] == world.now
                del waiting[index]
        run_pass(world)
    for index in world.holders:
        world.holding += held_so_far(world, index)


def _edges(world: World) -> list[int]:
    """Instants at which something may start although nothing ends or arrives."""
    edges = [at for rule in world.cluster.reservations for at in (rule.start_at, rule.end_at)]
    edges += [start for start, _ in world.planned.values()]
    if timeout := world.policy.gang_timeout_s:
        edges += [
            since + timeout for index, since in world.holders.items() if may_give_up(world, index)
        ]
    return edges


def _complete_all(world: World, ended: set[int]) -> None:
    while done := [run for run in world.running if run.end <= world.now]:
        run = min(done, key=lambda one: (one.end, one.job.index))
        world.complete(run)
        ended.add(run.job.index)


def _outages(cluster: Cluster) -> Iterator[tuple[int, int, int, bool]]:
    """(time, 0 up or 1 down, node, kills): ups come before downs."""
    for outage in cluster.outages:
        node = cluster.index[outage.node]
        kills = outage.kind is OutageKind.FAIL
        yield outage.down_at, 1, node, kills
        if outage.up_at is not None:
            yield outage.up_at, 0, node, kills


def _outage(world: World, down: int, node: int, kills: bool) -> None:
    world.news += 1
    world.down[node] = world.down.get(node, 0) + (1 if down else -1)
    world.planned.clear()
    if down and kills:
        hit = [run for run in world.running if any(at == node for at, _ in run.placed)]
        for run in sorted(hit, key=lambda one: one.job.index):
            world.interrupt(run)
        for index in [i for i in world.holders if _holds(world, i, node)]:
            release(world, index)


def _holds(world: World, index: int, node: int) -> bool:
    return any(at == node for at, _ in world.all[index].placed)


def may_give_up(world: World, index: int) -> bool:
    """Three times at most while nothing else happens: more of the same changes nothing."""
    times, since_news = world.gave.get(index, (0, world.news))
    return since_news != world.news or times < MOST_TURNS


def _give_up(world: World) -> None:
    timeout = world.policy.gang_timeout_s
    for index, since in sorted(world.holders.items()):
        if timeout and since + timeout <= world.now and may_give_up(world, index):
            times, since_news = world.gave.get(index, (0, world.news))
            world.gave[index] = (times + 1 if since_news == world.news else 1, world.news)
            release(world, index)
            job = world.all[index]
            job.key = (*job.key[:2], world.now, job.index)


__all__ = ["Held", "ReferenceOutcome", "World", "never", "reference"]
