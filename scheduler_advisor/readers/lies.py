"""How gangs lay in the fleet, in the terms of the all-reduce model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.parts.allreduce import Path, allreduce_s, spread_of
from scheduler_advisor.engine.parts.levels import tree_of
from scheduler_advisor.engine.parts.places import islands_of, narrowed_links
from scheduler_advisor.engine.policy import Policy

ISLAND, LEAF = 0, 2  # steps of the table of links
MIB = 1 << 20


class Lies:
    """How gangs lay in the fleet, in the terms of the all-reduce model."""

    def __init__(self, fleet: Cluster, policy: Policy) -> None:
        self._fleet, self._tree = fleet, tree_of(fleet)
        self._islands = islands_of(fleet).tolist()
        self._links = {model: narrowed_links(model, policy) for model in set(fleet.gpu_model)}
        self._message = float(policy.topology.message_mib * MIB)
        self._alone: dict[tuple[str, int, int], float] = {}
        self._best_known: dict[tuple[str, int], float | None] = {}

    def excess(self, nodes: Sequence[str], held: Sequence[int]) -> float | None:
        """t(placement) / t(best) - 1; None where a node is not known."""
        known = self._fleet.index
        if any(node not in known for node in nodes):
            return None
        pairs = [(known[node], int(gpus)) for node, gpus in zip(nodes, held, strict=True) if gpus]
        if not pairs:
            return None
        here, best = self._allreduce(pairs), self._best(pairs)
        return max(0.0, here / best - 1) if best > 0 else 0.0

    def busy(
        self,
        nodes: Sequence[str],
        link: Mapping[str, Any] | None,
        net: Mapping[str, Any] | None,
    ) -> float | None:
        """The share of time in which its links, or its adapters, sent at their line rate."""
        model = next((self._model(node) for node in nodes if node in self._fleet.index), None)
        if model is None:
            return None
        rates = self._links[model].gb_s
        told: list[float] = []
        if link is not None and link["link"] is not None:
            told.append(link["link"] / (rates[ISLAND] * 1e9))
        if len(nodes) > 1 and net is not None and net["net"] is not None:
            told.append(net["net"] / (rates[LEAF] * 1e9))
        if not told:
            return None
        active: float | None = None if link is None else link["active"]
        return min(max(told), 1.0 if active is None else max(0.0, 1.0 - active))

    def _model(self, node: str) -> str:
        return self._fleet.gpu_model[self._fleet.index[node]]

    def _allreduce(self, pairs: Sequence[tuple[int, int]]) -> float:
        model = self._fleet.gpu_model[pairs[0][0]]
        # Most gangs lie on one node: they differ in their GPUs and its islands alone.
        alone = (model, self._islands[pairs[0][0]], pairs[0][1]) if len(pairs) == 1 else None
        if alone is not None and alone in self._alone:
            return self._alone[alone]
        paths: list[Path] = []
        for node, gpus in pairs:
            size = self._islands[node] or gpus
            where = int(self._tree.spine[node]), int(self._tree.leaf[node]), node
            paths += [(*where, at, min(size, gpus - at * size)) for at in range(-(-gpus // size))]
        took = allreduce_s(spread_of(paths), self._links[model], self._message)
        if alone is not None:
            self._alone[alone] = took
        return took

    def _best(self, pairs: Sequence[tuple[int, int]]) -> float:
        """The same GPUs on as few nodes like the first as hold them, in as few leaves as can be."""
        total = sum(gpus for _, gpus in pairs)
        wanted = self._fleet.gpu_model[pairs[0][0]], total
        if wanted not in self._best_known:
            best = self._closest(*wanted)
            self._best_known[wanted] = None if best is None else self._allreduce(best)
        known = self._best_known[wanted]
        return self._allreduce(pairs) if known is None else known

    def _closest(self, model: str, total: int) -> list[tuple[int, int]] | None:
        """Nodes of the model with the GPUs on each; None where there are too few."""
        alike = [node for node, name in enumerate(self._fleet.gpu_model) if name == model]
        each = min(max(int(self._fleet.gpus[node]) for node in alike), total)
        sizes = Counter(int(self._tree.leaf[node]) for node in alike)
        alike.sort(key=lambda one: (-sizes[int(self._tree.leaf[one])], self._tree.leaf[one], one))
        full = [node for node in alike if int(self._fleet.gpus[node]) >= each]
        count = -(-total // each)
        if count > len(full):
            return None
        return [*((node, each) for node in full[: count - 1]),
                (full[count - 1], total - each * (count - 1))]  # fmt: skip
