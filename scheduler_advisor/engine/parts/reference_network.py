"""Placing by the network in the slow reference, written from docs/simulator-parts.md.

It hooks into the reference of the fast drivers and of the general one, so that orders, quotas, EASY
and preemption with placement by the network have a second telling. It shares with the kernels the
table of links and the tree of nodes alone; the four steps are `reference_gang.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.parts.allreduce import allreduce_s, spread_of
from scheduler_advisor.engine.parts.levels import tree_of
from scheduler_advisor.engine.parts.links import Links
from scheduler_advisor.engine.parts.places import by_network, islands_of, narrowed_links, need_of
from scheduler_advisor.engine.parts.reference_gang import Site, gang_nodes
from scheduler_advisor.engine.policy import Placement, Policy
from scheduler_advisor.engine.reference_world import Guarding, Held, Job, Need, Placed, Space

LEVEL_OF = {1: "node", 2: "leaf", 3: "spine", 4: "block"}
MILLION = 1_000_000
MIB = 1 << 20


@dataclass
class Network:
    """What the reference knows of the network; `spaces` and `down` are the world's own."""

    jobs: Jobs
    cluster: Cluster
    policy: Policy
    spaces: dict[int, Space] = field(default_factory=dict)
    down: dict[int, int] = field(default_factory=dict)
    slow: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tree = tree_of(self.cluster)
        self.island = islands_of(self.cluster)

    def places(self, job: Job) -> bool:
        """Does the network decide where the job goes?"""
        return self.policy.placement is Placement.TOPOLOGY and _whole(job)

    def need(self, job: Job) -> str:
        """What the job requires; heard only where the network decides."""
        if self.policy.placement is not Placement.TOPOLOGY:
            return ""
        bound = need_of(self.jobs.topology[job.index], self.cluster, self.policy)
        return LEVEL_OF.get(bound, "")

    def place(self, job: Job, usable: dict[int, Space], safe: Guarding | None) -> Placed | None:
        """All tasks of the job by the four steps, or nothing. Only nodes on which one task alone
        keeps the promise to the head are looked at; if all of them together break it, it waits."""
        tasks = [need for need in job.needs if not need.rest]
        # Whoever looks at copies of the nodes sees only those.
        free = {node: space.whole for node, space in self._seen(job, usable).items()}
        rooms = {node: self._room(job, tasks[0], usable, node, safe) for node in free}
        nodes = gang_nodes(self._site(free), rooms, len(tasks), self.need(job))
        placed: Placed = []
        for node, need in zip(nodes or [], tasks, strict=False):
            if not self._put(node, need, usable, safe, placed):
                _undo(usable, placed)
                return None
        if nodes is None:
            return None
        for rest in [need for need in job.needs if need.rest]:
            node = self._rest_node(job, rest, usable, safe, placed)
            if node < 0 or not self._put(node, rest, usable, safe, placed):
                _undo(usable, placed)
                return None
        return placed

    def _seen(self, job: Job, usable: dict[int, Space]) -> dict[int, Space]:
        mine = all(self.spaces.get(node) is space for node, space in usable.items())
        if not mine:
            return usable
        return {n: self.spaces[n] for n in sorted(job.nodes) if not self.down.get(n)}

    def _site(self, free: dict[int, int]) -> Site:
        return Site(
            free,
            {node: int(self.tree.leaf[node]) for node in free},
            {node: int(self.tree.spine[node]) for node in free},
            {node: int(self.tree.rack[node]) for node in free},
        )

    def _room(
        self, job: Job, need: Need, usable: dict[int, Space], node: int, safe: Guarding | None
    ) -> int:
        if node not in usable or not usable[node].fits(need):
            return 0
        if safe is not None and not safe(node, need, None):
            return 0
        return 1 if job.distinct or need.exclusive else usable[node].count(need)

    def _put(
        self,
        node: int,
        need: Need,
        usable: dict[int, Space],
        safe: Guarding | None,
        placed: Placed,
    ) -> bool:
        if safe is not None and not safe(node, need, None):
            return False
        placed.append((node, self._take(node, need, usable[node])))
        if safe is not None:
            safe.took(*placed[-1])
        return True

    def _take(self, node: int, need: Need, space: Space) -> Held:
        size = int(self.island[node])
        if size == 0 or need.exclusive:
            return space.take(need)
        left, chosen = need.gpus, []
        whole = [at for at, milli in enumerate(space.gpus) if milli == 1000]
        while left:
            islands: dict[int, list[int]] = {}
            for gpu in whole:
                islands.setdefault(gpu // size, []).append(gpu)
            enough = {one: gpus for one, gpus in islands.items() if len(gpus) >= left}
            fullest = min(enough.values(), key=len, default=None)
            taken = (fullest or max(islands.values(), key=len))[:left]
            chosen += taken
            left -= len(taken)
            whole = [gpu for gpu in whole if gpu // size != taken[0] // size]
        held = Held(dict.fromkeys(chosen, 1000), need.cpu, need.mem)
        space.add(held, -1)
        return held

    def _rest_node(
        self, job: Job, rest: Need, usable: dict[int, Space], safe: Guarding | None, placed: Placed
    ) -> int:
        last, used = placed[-1][0], {node for node, _ in placed}
        tree, need = self.tree, self.need(job)
        found = []
        for node in sorted(job.nodes & usable.keys()):
            if not usable[node].fits(rest) or (job.distinct and node in used):
                continue
            if safe is not None and not safe(node, rest, None):
                continue
            far = 3 if tree.spine[node] != tree.spine[last] else 2
            far = 1 if tree.leaf[node] == tree.leaf[last] else far
            inside = {
                "node": node in used,
                "leaf": far == 1,
                "spine": far < 3,
                "block": tree.rack[node] == tree.rack[last],
            }
            if inside.get(need, True):
                found.append((0 if node in used else far, usable[node].whole, node))
        return min(found)[2] if found else -1

    # What communication costs

    def stretch(self, job: Job, placed: Placed) -> None:
        """The job's run time, and what is left of it, become what they are where it was put."""
        if not self.policy.topology.slowdown or not _whole(job):
            return
        old, new = self.slow.get(job.index, MILLION), self._slowdown(job, placed)
        if old == new:
            return
        before, job.run = job.run, ceil(Fraction(int(self.jobs.run[job.index]) * new, MILLION))
        job.left = job.run if job.left == before else ceil(Fraction(job.left * new, old))
        self.slow[job.index] = new

    def _slowdown(self, job: Job, placed: Placed) -> int:
        """1 + f (t(placement) / t(best) - 1) in millionths, rounded half up."""
        best = self._best(job)
        here = self._allreduce(placed)
        milli = int(self.jobs.comm_milli[job.index]) or self._default(job)
        if best <= 0 or here <= best:
            return MILLION
        return MILLION + int(milli * 1000 * (here / best - 1.0) + 0.5)

    def _default(self, job: Job) -> int:
        gpus = int(self.jobs.gpus[job.index])
        doublings = len(bin(max(gpus, 1))) - 3
        return min(500, self.policy.topology.comm_milli * doublings)

    def _best(self, job: Job) -> float:
        """The job on the empty cluster, placed by the network whatever the policy says."""
        empty = {
            node: Space(
                [1000] * int(self.cluster.gpus[node]),
                int(self.cluster.cpu_milli[node]),
                int(self.cluster.mem_mib[node]),
            )
            for node in sorted(job.nodes)
        }
        placed = self.place(job, empty, None)
        return 0.0 if placed is None else self._allreduce(placed)

    def _allreduce(self, placed: Placed) -> float:
        rows = [narrowed_links(self.cluster.gpu_model[n], self.policy) for n, _ in placed]
        links = Links(
            "",
            0,
            tuple(min(rates) for rates in zip(*(row.gb_s for row in rows), strict=True)),
            tuple(max(hops) for hops in zip(*(row.us for row in rows), strict=True)),
            "",
            True,
        )
        pieces = []
        for node, held in placed:
            size = int(self.island[node])
            where = int(self.tree.spine[node]), int(self.tree.leaf[node]), node
            pieces += [(*where, gpu // size if size else 0, 1) for gpu in held.gpus]
        message = float(self.policy.topology.message_mib * MIB)
        return allreduce_s(spread_of(pieces), links, message)


def _whole(job: Job) -> bool:
    return bool(job.needs) and job.needs[0].gpus > 0 and not job.needs[0].rest


def _undo(usable: dict[int, Space], placed: Placed) -> None:
    for node, held in placed:
        usable[node].add(held, +1)


def with_network(jobs: Jobs, cluster: Cluster, policy: Policy, made: list[Job]) -> list[Job]:
    """The jobs, those for which the network matters with what it means for them."""
    if by_network(policy):
        network = Network(jobs, cluster, policy)
        for job in made:
            job.network = network
    return made


def never_in_a_domain(job: Job) -> bool:
    """Would no domain that it requires hold the job, even on the empty cluster?"""
    network = job.network
    if network is None or not network.places(job) or not network.need(job):
        return False
    empty = {node: network.spaces[node].copy() for node in sorted(job.nodes)}
    return network.place(job, empty, None) is None


__all__ = ["Network", "never_in_a_domain", "with_network"]
