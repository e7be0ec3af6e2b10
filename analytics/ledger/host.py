"""CPU and memory that runs hold on nodes, once per run and node, as columns."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from analytics.ledger.facts import Allocation, Facts
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
    rank = {name: place for place, name in enumerate(fleet.nodes)}
    shares: dict[tuple[int, str], list[int]] = {}
    named: dict[tuple[int, str], set[str]] = defaultdict(set)
    for a in facts.allocations:
        node = rank.get(a.node)
        if node is None:
            continue
        known = shares.get((node, a.run_id))
        if known is None:
            shares[node, a.run_id] = [a.gpus, a.cpus, a.mem_mib, a.t0, a.t1]
        else:
            _widen(known, a)
        if a.gpu_uuid is not None:
            named[node, a.run_id].add(a.gpu_uuid)
            shares[node, a.run_id][0] = max(shares[node, a.run_id][0], len(named[node, a.run_id]))
    keys = sorted(shares)
    runs = sorted({run for _, run in keys})
    place_of = {name: place for place, name in enumerate(runs)}
    table = np.array([shares[key] for key in keys], np.int64).reshape(-1, 5)
    return HostShares(
        runs,
        np.array([node for node, _ in keys], np.int64),
        np.array([place_of[run] for _, run in keys], np.int64),
        *(np.ascontiguousarray(table[:, column]) for column in range(5)),
    )


def _widen(known: list[int], a: Allocation) -> None:
    known[0], known[1] = max(known[0], a.gpus), max(known[1], a.cpus)
    known[2] = max(known[2], a.mem_mib)
    known[3], known[4] = min(known[3], a.t0), max(known[4], a.t1)
