"""The slow, obvious world that the fast engine is compared with: tasks, nodes, and who fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from scheduler_advisor.engine.chance import draw
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.policy import Placement, Policy
from scheduler_advisor.engine.reference_scored import Scoring, with_scoring

if TYPE_CHECKING:
    from scheduler_advisor.engine.parts.reference_network import Network

FULL = 1000  # thousandths of one GPU
MANY = 1 << 16  # tasks that ask for nothing


@dataclass(frozen=True)
class Need:
    """What one task asks of one node."""

    gpus: int
    milli: int
    cpu: int
    mem: int
    rest: bool = False
    exclusive: bool = False


@dataclass
class Space:
    """What is free on one node: each GPU's thousandths, CPU, memory, and the tasks it holds."""

    gpus: list[int]
    cpu: int
    mem: int
    tasks: int = 0

    def copy(self) -> Space:
        return Space(list(self.gpus), self.cpu, self.mem, self.tasks)

    @property
    def whole(self) -> int:
        return self.gpus.count(FULL)

    def fits(self, need: Need) -> bool:
        if need.cpu > self.cpu or need.mem > self.mem:
            return False
        if need.exclusive and self.tasks:
            return False
        if need.milli:
            return max(self.gpus, default=0) >= need.milli
        return need.gpus <= self.whole

    def take(self, need: Need, gpu: int | None = None) -> Held:
        """Takes the lowest whole GPUs, or for a share `gpu` or the fullest that still has room."""
        if need.exclusive:
            held = Held({at: left for at, left in enumerate(self.gpus) if left}, self.cpu, self.mem)
        elif need.milli:
            room = [(left, at) for at, left in enumerate(self.gpus) if left >= need.milli]
            at = min(room)[1] if gpu is None else gpu
            held = Held({at: need.milli}, need.cpu, need.mem)
        else:
            free = [at for at, left in enumerate(self.gpus) if left == FULL][: need.gpus]
            held = Held(dict.fromkeys(free, FULL), need.cpu, need.mem)
        self.add(held, -1)
        return held

    def add(self, held: Held, sign: int) -> None:
        for at, milli in held.gpus.items():
            self.gpus[at] += sign * milli
        self.cpu += sign * held.cpu
        self.mem += sign * held.mem
        self.tasks -= sign

    def count(self, need: Need) -> int:
        """How many such tasks would fit side by side."""
        if not (need.gpus or need.milli or need.cpu or need.mem or need.exclusive):
            return MANY
        space, count = self.copy(), 0
        while space.fits(need):
            space.take(need)
            count += 1
        return count


@dataclass(frozen=True)
class Held:
    """What one task holds on its node."""

    gpus: dict[int, int]
    cpu: int
    mem: int


@dataclass
class Job:
    """One job on its way through the queue."""

    index: int
    key: tuple[int, ...]
    needs: list[Need]
    distinct: bool
    run: int
    limit: int
    nodes: set[int]
    left: int = 0
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    placed: list[tuple[int, Held]] = field(default_factory=list)
    since: list[int] = field(default_factory=list)
    scoring: Scoring | None = None
    network: Network | None = None
    before: list[int] = field(default_factory=list)  # where it ran when the replay begins

    @property
    def gpus(self) -> int:
        return sum(need.gpus for need in self.needs)


class Guarding(Protocol):
    """Refuses nodes; hears of what was taken."""

    def __call__(self, node: int, need: Need, gpu: int | None) -> bool: ...

    def took(self, node: int, held: Held) -> None: ...


Spaces = dict[int, Space]
Placed = list[tuple[int, Held]]


def place(
    job: Job,
    spaces: Spaces,
    policy: Policy,
    needs: Sequence[Need] | None = None,
    safe: Guarding | None = None,
    first: int = 0,
) -> Placed | None:
    """Puts the job's tasks one by one on nodes of `spaces`, or changes nothing and says None.
    `safe(node, need, gpu)` may refuse a node; it is told of each task by `safe.took`."""
    wanted = job.needs if needs is None else needs
    if job.network is not None and job.network.places(job):
        return job.network.place(job, spaces, safe)
    placed: Placed = []
    for task, need in enumerate(wanted):
        used = {node for node, _ in placed} if job.distinct else set()
        room = [
            node
            for node in sorted(job.nodes & spaces.keys())
            if node not in used and spaces[node].fits(need)
        ]
        if safe is not None:
            room = [node for node in room if safe(node, need, gpu_for(job, spaces, node, need))]
        if not room:
            for node, held in placed:
                spaces[node].add(held, +1)
            return None
        decision = (job.index, len(job.starts), first + task)
        if job.scoring is not None:
            node = job.scoring.choose(room, need, spaces, decision)
        else:
            node = choose(room, need, spaces, policy, decision)
        placed.append((node, spaces[node].take(need, gpu_for(job, spaces, node, need))))
        if safe is not None:
            safe.took(*placed[-1])
    return placed


def put_back(job: Job, spaces: Spaces) -> Placed | None:
    """The nodes on which the job ran when the replay began, asked for once; None: no room."""
    before, job.before = job.before, []
    if len(before) != len(job.needs):
        return None
    placed: Placed = []
    for node, need in zip(before, job.needs, strict=True):
        if node not in spaces or not spaces[node].fits(need):
            for other, held in placed:
                spaces[other].add(held, +1)
            return None
        placed.append((node, spaces[node].take(need)))
    return placed


def gpu_for(job: Job, spaces: Spaces, node: int, need: Need) -> int | None:
    """The GPU for a share where the placement rule settles it."""
    return None if job.scoring is None else job.scoring.best(spaces[node], node, need)[1]


def choose(
    room: list[int], need: Need, spaces: Spaces, policy: Policy, decision: tuple[int, int, int]
) -> int:
    """The node that the placement rule prefers; ties go to the first in the cluster's order."""
    kind = policy.placement
    if kind is Placement.RANDOM:
        return room[draw(policy.seed, *decision, len(room))]
    if kind is Placement.FIRST_FIT:
        return room[0]
    whole = {node: spaces[node].whole for node in room}
    if kind is Placement.WORST_FIT or (kind is Placement.CONSOLIDATE and need.rest):
        return min(room, key=lambda node: (-whole[node], node))
    if need.milli:  # a GPU that is shared already comes before a fresh one
        return min(
            room, key=lambda node: (not _has_shared_room(spaces[node], need), whole[node], node)
        )
    return min(room, key=lambda node: (whole[node], node))


def _has_shared_room(space: Space, need: Need) -> bool:
    return any(need.milli <= left < FULL for left in space.gpus)


def jobs_of(jobs: Jobs, cluster: Cluster, policy: Policy, keys: list[tuple[int, ...]]) -> list[Job]:
    """The jobs as objects, each with the nodes that it may use."""
    made = []
    for index in range(len(jobs)):
        size, rest = int(jobs.gpus_per_task[index]), int(jobs.rest_gpus[index])
        milli, exclusive = int(jobs.gpu_milli[index]), bool(jobs.exclusive[index])
        cpu, mem = int(jobs.cpu_milli[index]), int(jobs.mem_mib[index])
        need = Need(size, milli, cpu, mem, exclusive=exclusive)
        needs = [need] * int(jobs.tasks[index])
        if rest:
            rest_cpu, rest_mem = (-(-amount * rest // size) for amount in (cpu, mem))
            needs.append(Need(rest, 0, rest_cpu, rest_mem, rest=True, exclusive=exclusive))
        made.append(
            Job(
                index,
                keys[index],
                needs,
                bool(jobs.distinct_nodes[index]),
                int(jobs.run[index]),
                int(jobs.limit[index]),
                allowed_nodes(jobs, cluster, index),
                left=int(jobs.run[index]),
                before=[
                    cluster.index.get(name, -1)
                    for name in filter(None, jobs.stood_on[index].split("|"))
                ],
            )
        )
    # It needs what this module tells of jobs and nodes.
    from scheduler_advisor.engine.parts.reference_network import with_network

    return with_network(jobs, cluster, policy, with_scoring(jobs, cluster, policy, made))


def allowed_nodes(jobs: Jobs, cluster: Cluster, index: int) -> set[int]:
    """Nodes whose model, features, partition and reservation the job accepts."""
    models = {name for name in jobs.gpu_models[index].split("|") if name}
    features = {name for name in jobs.features[index].split("&") if name}
    nodes = {
        node
        for node in range(len(cluster))
        if (not models or cluster.gpu_model[node] in models) and features <= cluster.features[node]
    }
    if cluster.partitions:
        nodes &= _in_partitions(jobs, cluster, index)
    if name := jobs.reservation[index]:
        held = [rule for rule in cluster.reservations if rule.name == name]
        nodes &= {cluster.index[node] for rule in held for node in rule.nodes}
    return nodes


def _in_partitions(jobs: Jobs, cluster: Cluster, index: int) -> set[int]:
    asked = {name for name in jobs.partitions[index].split("|") if name}
    gpus = int(jobs.gpus[index])
    tasks = int(jobs.tasks[index]) + (1 if jobs.rest_gpus[index] else 0)
    nodes: set[int] = set()
    for part in cluster.partitions:
        if part.name not in asked and (asked or not part.default):
            continue
        if part.max_limit_s is not None and jobs.limit[index] > part.max_limit_s:
            continue
        if part.max_gpus_per_job is not None and gpus > part.max_gpus_per_job:
            continue
        if part.max_nodes_per_job is not None and tasks > part.max_nodes_per_job:
            continue
        nodes |= {cluster.index[name] for name in part.nodes}
    return nodes
