"""Where a node hangs: NVLink island, node, leaf switch, spine, block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.errors import PolicyError

Ints = NDArray[np.int64]


class Level(StrEnum):
    """From near to far. `block` is the column `rack` of an inventory: a Slurm block, the core
    switch over a row of spines, or a rack."""

    ISLAND = "island"
    NODE = "node"
    LEAF = "leaf"
    SPINE = "spine"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Tree:
    """Codes per node. `leaf`, `spine` and `block` are nested; leaves of one name under two spines
    are two. A node whose leaf is not said, while others say theirs, shares it with nobody. `rack`
    has the blocks as they are named; they are the widest domain (`block`) only if no leaf and no
    spine has nodes in two of them, otherwise `block` is 0 everywhere."""

    leaf: Ints
    spine: Ints
    block: Ints
    rack: Ints
    named: frozenset[Level]

    def domains(self, level: Level) -> Ints:
        """The domain of each node at `level`; an island counts as its node here."""
        if level in (Level.ISLAND, Level.NODE):
            return np.arange(len(self.leaf))
        if level not in self.named:
            raise PolicyError(
                f"topology.level = {level}, but no node of the cluster says its {_COLUMN[level]}:"
                f" give the fleet a column {_COLUMN[level]}, or choose another level"
            )
        return {Level.LEAF: self.leaf, Level.SPINE: self.spine, Level.BLOCK: self.rack}[level]


_COLUMN = {Level.LEAF: "leaf", Level.SPINE: "spine", Level.BLOCK: "rack"}


def tree_of(cluster: Cluster) -> Tree:
    """The network as the cluster's inventory tells it."""
    leaf, spine, rack = (_codes(cluster.leaf), _codes(cluster.spine), _codes(cluster.rack))
    named_by = ((leaf, cluster.leaf), (spine, cluster.spine))
    wide = all(_within(part, rack) for part, names in named_by if any(names))
    block = rack if wide else np.zeros_like(rack)
    spine = _joined(block, spine)
    leaf = _joined(spine, leaf)
    named = {
        level for level, column in _COLUMN.items() if any(getattr(cluster, column))
    }  # fmt: skip
    return Tree(leaf, spine, block, rack, frozenset(named))


def _codes(names: Sequence[str]) -> Ints:
    """Numbers for names in order of first sight; the unnamed are each their own, if any is
    named."""
    seen: dict[str, int] = {}
    alone = any(names)
    codes = [
        seen.setdefault(name if name or not alone else f"\0{at}", len(seen))
        for at, name in enumerate(names)
    ]
    return np.array(codes, np.int64)


def _joined(outer: Ints, inner: Ints) -> Ints:
    """One number per pair, in order of first sight."""
    if not len(outer):
        return outer
    pairs = outer * (int(inner.max()) + 1) + inner
    _, first, code = np.unique(pairs, return_index=True, return_inverse=True)
    place = np.empty(len(first), np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    joined: Ints = place[code.reshape(-1)]
    return joined


def _within(inner: Ints, outer: Ints) -> bool:
    """True where every inner domain lies in one outer domain."""
    pairs = np.unique(np.stack((inner, outer), axis=1), axis=0)
    return len(np.unique(pairs[:, 0])) == len(pairs)
