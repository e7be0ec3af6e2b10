"""Packing a list of pods onto empty nodes under one policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler_advisor.engine.hashes import digest
from scheduler_advisor.engine.packing import kernel
from scheduler_advisor.engine.packing.errors import PackingError
from scheduler_advisor.engine.packing.fragmentation import unusable_by_node
from scheduler_advisor.engine.packing.outcome import Packing
from scheduler_advisor.engine.packing.policy import SCORE_CODE, PackPolicy, Score, Ties
from scheduler_advisor.engine.packing.scores import Largest
from scheduler_advisor.engine.packing.shapes import (
    MILLI,
    Ints,
    Kinds,
    ModelBits,
    Nodes,
    Pods,
    State,
    empty_state,
    kinds_of,
    node_classes,
)
from scheduler_advisor.engine.packing.typical import Typical, typical_tasks

_RANK = {Ties.MOST_PACKED: kernel.MOST_PACKED, Ties.EMPTIEST: kernel.EMPTIEST}


class Prepared:
    """A packing question made ready for the kernel, so that only the packing itself is timed."""

    def __init__(
        self, pods: Pods, nodes: Nodes, policy: PackPolicy, *, order: Ints | None = None, seed: int
    ) -> None:
        if nodes.capacity_milli == 0:
            raise PackingError("no node has a GPU: check the column of GPUs in the node file")
        self.policy = policy
        self.nodes = nodes.take(_tie_order(nodes, policy))
        self.pods = pods if order is None else pods.take(order)
        bits = ModelBits(pods, nodes)
        self._typical = typical_tasks(pods, bits)
        self._kinds, self._kind = kinds_of(self.pods, bits)
        self._state = empty_state(self.nodes, bits)
        self._largest = Largest(
            max(1, int(nodes.cpu_milli.max())), max(1, int(nodes.gpus.max()) * MILLI)
        )
        random = np.random.Generator(
            np.random.PCG64([seed, 1])
        )  # the order has a stream of its own
        self._draws = random.random((len(self.pods), 2))
        at_random = policy.ties is Ties.RANDOM or policy.score is Score.RANDOM
        self._tables = _tables(self._kinds, self._state, len(self.pods), at_random)

    def run(self) -> Packing:
        """Pack. One run for each prepared question: the state is used up."""
        count = len(self.pods)
        placed = kernel.Placed(
            np.full(count, -1, dtype=np.int64),
            np.zeros(count, dtype=np.int64),
            np.zeros(count + 1, dtype=np.int64),
        )
        computed = kernel.pack_all(
            SCORE_CODE[self.policy.score],
            _RANK.get(self.policy.ties, kernel.FIRST),
            self._kind,
            self._kinds,
            self._typical,
            self._state,
            self._tables,
            self._largest,
            self._draws,
            placed,
        )
        return self._packing(placed, int(computed))

    def _packing(self, placed: kernel.Placed, computed: int) -> Packing:
        asked = self.pods.total_gpu_milli
        held = np.where(placed.node >= 0, asked, 0)
        return Packing(
            pods=self.pods,
            nodes=self.nodes,
            policy=self.policy,
            node=placed.node,
            gpu_mask=placed.gpus,
            demand_milli_after=_running(asked),
            allocated_milli_after=_running(held),
            fragmentation_milli_after=placed.frag / self._typical.total,
            scores_computed=computed,
            workload_hash=digest(self._kind, *self._kinds, *self._typical),
            cluster_hash=_cluster_hash(self.nodes),
        )


def pack(
    pods: Pods, nodes: Nodes, policy: PackPolicy, *, order: Ints | None = None, seed: int = 0
) -> Packing:
    """Place the pods one by one on empty nodes; a pod that fits nowhere is passed over.

    ``order``: positions in ``pods`` in order of arrival, repeats allowed; typical tasks are always
    those of the list itself. ``seed`` decides random ties, nodes and GPUs.
    """
    return Prepared(pods, nodes, policy, order=order, seed=seed).run()


def fragmentation_milli(pods: Pods, nodes: Nodes) -> float:
    """F of the empty nodes against the typical tasks of ``pods``, in thousandths of a GPU."""
    bits = ModelBits(pods, nodes)
    typical: Typical = typical_tasks(pods, bits)
    state: State = empty_state(nodes, bits)
    return unusable_by_node(typical, state, np.zeros(len(nodes), dtype=np.int64)) / typical.total


def _tie_order(nodes: Nodes, policy: PackPolicy) -> Ints:
    if policy.ties is not Ties.LISTED:
        return np.array(sorted(range(len(nodes)), key=lambda i: nodes.name[i]), dtype=np.int64)
    return _listed_order(nodes.name, policy.listed)


def _listed_order(names: Sequence[str], listed: Sequence[str]) -> Ints:
    row = {name: i for i, name in enumerate(names)}
    missing = sorted(set(row).difference(listed))
    unknown = sorted(set(listed).difference(row))
    if missing or unknown or len(set(listed)) < len(listed):
        odd = (missing or unknown or ["a node twice"])[0]
        raise PackingError(
            f"the tie order does not name every node exactly once ({len(missing)} missing, "
            f"{len(unknown)} unknown, for example {odd!r}): list all {len(names)} nodes"
        )
    return np.array([row[name] for name in listed], dtype=np.int64)


def _tables(kinds: Kinds, state: State, pods: int, at_random: bool) -> kernel.Tables:
    nodes = len(state.cpu)
    half = 1 << max(0, (nodes - 1).bit_length())
    count = len(kinds.cpu)
    return kernel.Tables(
        keys=np.full((count, 2 * half), -1, dtype=np.int64),
        tied=np.zeros((count, 2 * half if at_random else 0), dtype=np.int64),
        node_class=node_classes(state),
        frag=np.zeros(nodes, dtype=np.int64),
        log=np.zeros(pods, dtype=np.int64),
        last_change=np.full(nodes, -1, dtype=np.int64),
        seen=np.full(count, -1, dtype=np.int64),
    )


def _running(amounts: Ints) -> Ints:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(amounts)])


def _cluster_hash(nodes: Nodes) -> str:
    names, models = tuple(nodes.name), tuple(nodes.gpu_model)
    return digest(names, models, nodes.cpu_milli, nodes.mem_mib, nodes.gpus)
