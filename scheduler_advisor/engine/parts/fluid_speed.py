"""How fast a running job goes: by its network, its size, and who shares its GPU."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.parts.allreduce import (
    PPM,
    allreduce_s,
    comm_of,
    slowdown_ppm,
    spread_of,
)
from scheduler_advisor.engine.parts.ask import Ask, demand_of, lift, place, profile_for
from scheduler_advisor.engine.parts.floor import Floor, Piece, empty_floor
from scheduler_advisor.engine.parts.interference import (
    Demand,
    mig_speed,
    mps_speeds,
    time_slice_speeds,
)
from scheduler_advisor.engine.parts.levels import Tree
from scheduler_advisor.engine.parts.links import Links
from scheduler_advisor.engine.parts.mig import WHOLE
from scheduler_advisor.engine.parts.places import islands_of, narrowed_links
from scheduler_advisor.engine.parts.resize import speed_at
from scheduler_advisor.engine.parts.runner import Runner
from scheduler_advisor.engine.parts.settings import Sharing
from scheduler_advisor.engine.policy import Placement, Policy

MIB = 1 << 20


class Speeds:
    """Speeds and holdings of runners on one floor."""

    def __init__(
        self, jobs: Jobs, cluster: Cluster, policy: Policy, floor: Floor, tree: Tree
    ) -> None:
        self._policy, self._floor, self._tree = policy, floor, tree
        self._cluster = cluster
        self._links = {model: narrowed_links(model, policy) for model in set(cluster.gpu_model)}
        self._islands = islands_of(cluster).tolist()
        comm = comm_of(jobs.comm_milli.tolist(), jobs.gpus.tolist(), policy.topology.comm_milli)
        self._comm = [milli if policy.topology.slowdown else 0 for milli, _ in comm]
        self._best: dict[object, float] = {}
        self.slow = [PPM] * len(jobs)  # by the network, as it was last asked for

    def of(self, runner: Runner) -> Fraction:
        """The job's speed where it lies; 1 = as on the reference placement, alone."""
        self.slow[runner.ask.job] = self._network_ppm(runner)
        speed = Fraction(PPM, self.slow[runner.ask.job])
        if runner.tasks != runner.ask.tasks:
            efficiency = self._policy.elastic.efficiency_milli
            speed *= speed_at(runner.tasks, runner.ask.tasks, efficiency)
        if runner.ask.milli:
            speed *= min(self._shared(runner.ask, piece) for piece in runner.pieces)
        return speed

    def beside(self, runner: Runner) -> set[int]:
        """Jobs with a share of a GPU that the job has a share of, or had until now."""
        if self._policy.sharing.kind not in (Sharing.MPS, Sharing.TIME_SLICE):
            return set()
        return {
            job
            for piece in runner.pieces
            if piece.milli
            for job, _ in self._floor[piece.node].gpus[piece.gpus[0]].shares
        }

    def held_milli(self, ask: Ask, piece: Piece) -> int:
        """Thousandths of GPUs that a task holds; a slice by its memory."""
        if piece.start >= 0:
            wanted = profile_for(self._floor, piece.node, ask)
            assert wanted is not None  # it was cut for the job
            return wanted.bandwidth_milli
        return piece.milli or len(piece.gpus) * WHOLE

    def held_in_all(self, runner: Runner) -> int:
        """The same of all its tasks."""
        return sum(self.held_milli(runner.ask, piece) for piece in runner.pieces)

    def _network_ppm(self, runner: Runner) -> int:
        comm = self._comm[runner.ask.job]
        if comm == 0 or runner.ask.gpus == 0:
            return PPM
        here = self._allreduce(runner.pieces)
        return slowdown_ppm(comm, here, self._best_of(runner))

    def _best_of(self, runner: Runner) -> float:
        """Seconds of an all-reduce of so many tasks on the empty cluster."""
        ask = runner.ask
        shape = (
            runner.tasks, ask.gpus, ask.rest, ask.cpu, ask.mem, ask.nodes, ask.need, ask.distinct,
            ask.exclusive,
        )  # fmt: skip
        if shape not in self._best:
            floor = empty_floor(self._cluster, self._islands)
            by_network = self._policy.with_values({"placement": Placement.TOPOLOGY.value})
            pieces = place(floor, ask, runner.tasks, by_network, self._tree)
            self._best[shape] = 0.0 if pieces is None else self._allreduce(pieces)
            if pieces is not None:
                lift(floor, pieces, ask.job)
        return self._best[shape]

    def _allreduce(self, pieces: list[Piece]) -> float:
        models = {self._cluster.gpu_model[piece.node] for piece in pieces}
        links = _slowest([self._links[model] for model in sorted(models)])
        spread = spread_of(self._lies(pieces))
        return allreduce_s(spread, links, float(self._policy.topology.message_mib * MIB))

    def _lies(self, pieces: list[Piece]) -> Iterator[tuple[int, int, int, int, int]]:
        for piece in pieces:
            node = piece.node
            where = (int(self._tree.spine[node]), int(self._tree.leaf[node]), node)
            size = self._islands[node]
            if size == 0:
                yield (*where, 0, len(piece.gpus))
                continue
            for gpu in piece.gpus:
                yield (*where, gpu // size, 1)

    def _shared(self, ask: Ask, piece: Piece) -> Fraction:
        kind = self._policy.sharing.kind
        if kind is Sharing.MIG:
            wanted = profile_for(self._floor, piece.node, ask)
            assert wanted is not None  # it was cut for the job
            return mig_speed(demand_of(ask), wanted)
        if kind not in (Sharing.MPS, Sharing.TIME_SLICE):
            return Fraction(1)
        others = sorted(self._floor[piece.node].gpus[piece.gpus[0]].shares)
        others.remove((ask.job, piece.milli))
        crowd = [demand_of(ask), *[Demand.of_share(milli, ask.latency) for _, milli in others]]
        if kind is Sharing.MPS:
            return mps_speeds(crowd, self._policy.sharing.crowding_milli)[0]
        return time_slice_speeds(crowd, self._policy.sharing.switch_milli)[0]


def _slowest(links: list[Links]) -> Links:
    first = links[0]
    return Links(
        first.gpu_model,
        first.island_gpus,
        tuple(min(rates) for rates in zip(*(one.gb_s for one in links), strict=True)),
        tuple(max(hops) for hops in zip(*(one.us for one in links), strict=True)),
        first.source,
        all(one.known for one in links),
    )
