"""What is installed when: pools as arrays, and their timelines."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from analytics.ledger.facts import Facts, Interval, Pool

Timeline = list[tuple[int, int, int]]
"""Disjoint ``(t0, t1, amount)``, in order; outside of them the amount is 0."""

FAILED_STATES = frozenset({"down", "failed"})


@dataclass(slots=True)
class Fleet:
    """Nodes and pools in name order, so that an index is also a rank."""

    nodes: list[str]
    pools: list[tuple[str, str]]
    node_of: list[int]
    installed: list[Timeline]
    inventory: list[list[Pool]] = field(repr=False)
    _by_node: dict[str, list[int]] = field(repr=False)

    @classmethod
    def of(cls, facts: Facts) -> Fleet:
        """Pools that exist at some time of the facts' window."""
        rows: dict[tuple[str, str], list[Pool]] = defaultdict(list)
        for pool in facts.pools:
            if pool.gpus > 0:
                rows[pool.node, pool.model].append(pool)
        pools = sorted(rows)
        nodes = sorted({pool.node for pool in facts.pools})
        rank = {name: place for place, name in enumerate(nodes)}
        off = defaultdict(list)
        for state in facts.states:
            if state.kind == "powered_down":
                off[state.node].append(state)
        by_node = defaultdict(list)
        for place, (node, _) in enumerate(pools):
            by_node[node].append(place)
        return cls(
            nodes=nodes,
            pools=pools,
            node_of=[rank[node] for node, _ in pools],
            installed=[_installed(rows[key], off[key[0]]) for key in pools],
            inventory=[rows[key] for key in pools],
            _by_node=dict(by_node),
        )

    def pools_of(self, node: str) -> list[int]:
        """The node's pools in model order; empty for a node without GPUs."""
        return self._by_node.get(node, [])

    def pool_for(self, node: str, model: str | None) -> int | None:
        """The pool that an allocation takes from: its model's, else the node's first; None = no
        such node.

        Inventory decides the model: a scheduler may record the type asked for, not the one given.
        """
        places = self.pools_of(node)
        exact = [place for place in places if self.pools[place][1] == model]
        return next(iter(exact or places), None)


def _installed(rows: list[Pool], off: list[Interval]) -> Timeline:
    """A pool that is not owned is not in the total while it is powered down."""
    timeline: Timeline = []
    for row in rows:
        parts = [(row.t0, row.t1)]
        if not row.owned:
            for state in off:
                parts = [piece for part in parts for piece in _without(part, state)]
        timeline.extend((t0, t1, row.gpus) for t0, t1 in parts)
    return sorted(timeline)


def _without(part: tuple[int, int], gap: Interval) -> list[tuple[int, int]]:
    before = (part[0], min(part[1], gap.t0))
    after = (max(part[0], gap.t1), part[1])
    return [piece for piece in (before, after) if piece[0] < piece[1]]


def clip(timeline: Timeline, since: int, until: int) -> Timeline:
    """The part of a timeline inside ``[since, until)``."""
    return [
        (max(t0, since), min(t1, until), amount)
        for t0, t1, amount in timeline
        if t0 < until and t1 > since
    ]
