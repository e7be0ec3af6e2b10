"""CPU and memory that runs hold on nodes, once per run and node, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.ledger.facts import Facts
from analytics.ledger.fleet import Fleet
from analytics.ledger.kernel.state import Array


@dataclass(frozen=True, slots=True)
class HostShares:
    """What each run holds of each node over ``[t0, t1)``, in the order (node, run name).

    ``run`` = the run's place in ``runs``, which are in order of name.
    """

    runs: list[str]
    node: Array
    run: Array
    gpus: Array
    cpus: Array
    mem_mib: Array
    t0: Array
    t1: Array


def host_shares(facts: Facts, fleet: Fleet) -> HostShares:
    """Once per (run, node), though every row of the run on the node repeats CPU and memory."""
    claims = facts.allocations
    rank = {name: place for place, name in enumerate(fleet.nodes)}
    ranks = np.array([rank.get(name, -1) for name in claims.nodes], np.int64)
    node = ranks[claims.node] if ranks.size else claims.node
    rows = np.flatnonzero(node >= 0)
    rows = rows[np.lexsort((claims.run[rows], node[rows]))]
    node, run = node[rows], claims.run[rows]
    first = np.ones(rows.shape[0], np.bool_)
    first[1:] = (node[1:] != node[:-1]) | (run[1:] != run[:-1])
    starts = np.flatnonzero(first)

    def folded(how: Any, values: Array) -> Array:
        return how.reduceat(values[rows], starts) if starts.size else values[:0]

    gpus = folded(np.maximum, claims.gpus)
    if (claims.gpu[rows] >= 0).any():
        gpus = np.maximum(gpus, _named(claims.gpu[rows], np.cumsum(first) - 1, starts.shape[0]))
    there, place = np.unique(run[starts], return_inverse=True)
    return HostShares(
        [claims.runs[at] for at in there.tolist()], node[starts], place.astype(np.int64), gpus,
        folded(np.maximum, claims.cpus), folded(np.maximum, claims.mem_mib),
        folded(np.minimum, claims.t0), folded(np.maximum, claims.t1),
    )  # fmt: skip


def _named(gpu: Array, group: Array, groups: int) -> Array:
    """How many different GPUs each group names."""
    width = int(gpu.max()) + 1
    pairs = np.unique(group[gpu >= 0] * width + gpu[gpu >= 0])
    return np.bincount(pairs // width, minlength=groups)
