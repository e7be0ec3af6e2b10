"""Who caused it: stranded time split over runs, waiting time named after the job that waits.
Modelled."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from analytics.ledger.classes import LedgerClass
from analytics.ledger.events import host_shares
from analytics.ledger.facts import Allocation
from analytics.ledger.frame import Frame
from analytics.ledger.heldrows import HeldRows
from analytics.ledger.kernel import state as k
from analytics.ledger.keys import pool_keys, run_keys
from analytics.ledger.pending import PendingJobs
from analytics.ledger.preemptor import lost_causes
from analytics.ledger.slices import cut
from analytics.ledger.split import split
from analytics.window import HOUR_US


@dataclass(frozen=True, slots=True)
class Cause:
    """How a code of the sweep is blamed: class, role of the run named, rule."""

    name: LedgerClass
    role: str
    rule: str


CAUSES = {
    k.C_CPU: Cause(LedgerClass.STRANDED_CPU, "causer", "profile"),
    k.C_MEM: Cause(LedgerClass.STRANDED_MEM, "causer", "profile"),
    k.C_CPU_REQUEST: Cause(LedgerClass.STRANDED_CPU, "causer", "request"),
    k.C_MEM_REQUEST: Cause(LedgerClass.STRANDED_MEM, "causer", "request"),
    k.C_SHAPE: Cause(LedgerClass.STRANDED_SHAPE, "causer", "blocks-shape"),
    k.C_TOPOLOGY: Cause(LedgerClass.STRANDED_TOPOLOGY, "causer", "blocks-shape"),
    k.C_GANG: Cause(LedgerClass.GANG_WAIT, "waiter", "waits"),
    k.C_ORDER: Cause(LedgerClass.POLICY_BLOCKED, "waiter", "order"),
    k.C_LIMIT: Cause(LedgerClass.POLICY_BLOCKED, "waiter", "limit"),
}

Key = tuple[int, int, str, str, str, str | None]
"""pool, slot, class, role, rule, run."""


@dataclass(slots=True)
class Amount:
    """GPU time of one cause, and the most that had to be released to free all GPUs."""

    gpu_us: int = 0
    cpu_milli: int | None = None
    mem_mib: int | None = None

    def released(self, code: int, amount: int | None) -> None:
        """Keep the largest amount of the resource that binds."""
        if amount is not None and code == k.C_CPU:
            self.cpu_milli = max(self.cpu_milli or 0, amount)
        elif amount is not None:
            self.mem_mib = max(self.mem_mib or 0, amount)


def causes(frame: Frame, segments: k.Array, pending: PendingJobs, busy: HeldRows) -> pa.Table:
    """Rows of ``ledger_cause``; per (pool, slice, class) they add up to the class."""
    found: dict[Key, Amount] = defaultdict(Amount)
    held = _on_nodes(frame)
    for pool, slot, code, job, _, gpu_us, t, gpus in _added_up(frame, held, segments).tolist():
        cause = CAUSES[code]
        if cause.role == "waiter":
            weights: list[tuple[str | None, int]] = [(pending.run_ids[job], 1)]
        else:
            weights = _weights(frame, pool, held, t, code)
        release = _release(frame, pool, held, t, (code, gpus))
        for run, part in split(gpu_us, weights):
            row = found[pool, slot, cause.name.value, cause.role, cause.rule, run]
            row.gpu_us += part
            row.released(code, release)
    for key, amount in lost_causes(frame, busy):
        found[key].gpu_us += amount
    return _table(frame, found)


def _added_up(frame: Frame, held: dict[str, _OnNode], segments: k.Array) -> k.Array:
    """Segments with a cause, cut to slices and added up while the same runs are on the node.

    Columns: pool, slot, code, job (-1 where a causer is blamed), epoch of the node's runs, GPU
    time, an instant in it, most GPUs.
    """
    wanted = segments[np.isin(segments[:, 3], list(CAUSES))]
    start = np.where(
        wanted[:, 3] == k.C_ORDER, np.maximum(wanted[:, 1], wanted[:, 6]), wanted[:, 1]
    )
    some = start < wanted[:, 2]
    wanted, start = wanted[some], np.ascontiguousarray(start[some])
    which, slot, begin, end = cut(start, np.ascontiguousarray(wanted[:, 2]), frame.bounds)
    pool, code, gpus, job = (wanted[which, column] for column in (0, 3, 4, 5))
    waits = np.isin(code, [c for c, cause in CAUSES.items() if cause.role == "waiter"])
    epoch = np.where(waits, 0, _epochs(frame, held, pool, begin))
    keys = np.column_stack([pool, slot, code, np.where(waits, job, -1), epoch])
    order = np.lexsort((begin, *keys.T[::-1]))
    keys, gpus, begin = keys[order], gpus[order], begin[order]
    first = np.ones(keys.shape[0], np.bool_)
    first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    places = np.flatnonzero(first)
    if not places.size:
        return np.zeros((0, 8), np.int64)
    time = np.add.reduceat(gpus * (end[order] - begin), places)
    most = np.maximum.reduceat(gpus, places)
    return np.column_stack([keys[places], time, begin[places], most])


def _epochs(frame: Frame, held: dict[str, _OnNode], pool: k.Array, begin: k.Array) -> k.Array:
    """A number that is the same while the runs and the inventory of a node are."""
    epoch = np.zeros(begin.shape[0], np.int64)
    order = np.argsort(pool, kind="stable")
    edges = np.searchsorted(pool[order], np.arange(len(frame.fleet.pools) + 1))
    for place, (node, _) in enumerate(frame.fleet.pools):
        mine = order[edges[place] : edges[place + 1]]
        if mine.size:
            cuts = {t for row in frame.fleet.inventory[place] for t in (row.t0, row.t1)}
            if node in held:
                cuts |= {t for a in held[node].rows for t in (a.t0, a.t1)}
            epoch[mine] = np.searchsorted(np.array(sorted(cuts), np.int64), begin[mine], "right")
    return epoch


class _OnNode:
    """The runs on one node over time, found by instant."""

    def __init__(self) -> None:
        self.rows: list[Allocation] = []
        self._live: dict[int, list[Allocation]] = {}
        self._cuts: list[int] = []

    def at(self, t: int) -> list[Allocation]:
        if not self._cuts:
            self._cuts = sorted({x for a in self.rows for x in (a.t0, a.t1)})
        place = bisect_right(self._cuts, t)
        if place not in self._live:
            self._live[place] = [a for a in self.rows if a.t0 <= t < a.t1]
        return self._live[place]


def _on_nodes(frame: Frame) -> dict[str, _OnNode]:
    nodes: dict[str, _OnNode] = defaultdict(_OnNode)
    for a in host_shares(frame.facts).values():
        nodes[a.node].rows.append(a)
    return nodes


def _weights(
    frame: Frame, pool: int, held: dict[str, _OnNode], t: int, code: int
) -> list[tuple[str | None, int]]:
    """Runs and their weights; nobody to blame = the platform (None)."""
    node = frame.fleet.pools[pool][0]
    live = held[node].at(t) if node in held else []
    if code in (k.C_SHAPE, k.C_TOPOLOGY):
        weights: list[tuple[str | None, int]] = [(a.run_id, a.gpus) for a in live if a.gpus > 0]
    else:
        weights = _excess(frame, node, live, t, code in (k.C_CPU, k.C_CPU_REQUEST))
    return sorted(weights, key=lambda pair: pair[0] or "") or [(None, 1)]


def _excess(
    frame: Frame, node: str, live: list[Allocation], t: int, cpu: bool
) -> list[tuple[str | None, int]]:
    """What each run holds of the resource beyond its GPUs' share of the node, in 1/GPUs of the
    unit."""
    rows = [
        row
        for place in frame.fleet.pools_of(node)
        for row in frame.fleet.inventory[place]
        if row.t0 <= t < row.t1
    ]
    gpus = sum(row.gpus for row in rows)
    total = next((row.cpus if cpu else row.mem_mib for row in rows), None)
    if total is None:
        return []
    over = [(a.run_id, (a.cpus if cpu else a.mem_mib) * gpus - a.gpus * total) for a in live]
    return [(run, weight) for run, weight in over if weight > 0]


def _release(
    frame: Frame, pool: int, held: dict[str, _OnNode], t: int, stranded: tuple[int, int]
) -> int | None:
    """How much of the exhausted resource must come free so that every free GPU of the node is
    usable."""
    code, gpus = stranded
    if code not in (k.C_CPU, k.C_MEM):
        return None
    node = frame.fleet.pools[pool][0]
    live = held[node].at(t) if node in held else []
    rows = [r for r in frame.fleet.inventory[pool] if r.t0 <= t < r.t1]
    profile = frame.demand_at(t)
    if code == k.C_CPU:
        total, own = (rows[0].cpus or 0) * 1000, profile.cpu_milli
        left = total - 1000 * sum(a.cpus for a in live)
    else:
        total, own = rows[0].mem_mib or 0, profile.mem_mib
        left = total - sum(a.mem_mib for a in live)
    installed = sum(
        r.gpus
        for place in frame.fleet.pools_of(node)
        for r in frame.fleet.inventory[place]
        if r.t0 <= t < r.t1
    )
    per_gpu = own if own is not None else total // installed
    return (max(left, 0) // per_gpu + gpus) * per_gpu - left if per_gpu else None


def _table(frame: Frame, found: dict[Key, Amount]) -> pa.Table:
    keys = sorted(found, key=lambda key: (key[1], key[0], key[2:5], key[5] or ""))
    runs = sorted({key[5] for key in keys if key[5] is not None})
    run_key = run_keys(frame.work, frame.facts, runs)
    pool_key = pool_keys(frame.work, frame.facts.cluster, frame.fleet.pools)
    begin = [int(frame.bounds[key[1]]) for key in keys]
    priced = {
        model: frame.prices.keys(model, frame.bounds)
        for model in {model for _, model in frame.fleet.pools}
    }
    pools = frame.fleet.pools
    time = pa.timestamp("us")
    return pa.table(
        {
            "hour": pa.array([t // HOUR_US * HOUR_US for t in begin], time),
            "since": pa.array(begin, time),
            "until": pa.array([int(frame.bounds[key[1] + 1]) for key in keys], time),
            "pool_key": pa.array([pool_key[pools[key[0]]] for key in keys], pa.int32()),
            "price_key": pa.array([priced[pools[key[0]][1]][key[1]] for key in keys], pa.int32()),
            "posting": pa.array([0] * len(keys), pa.int32()),
            "class": pa.array([key[2] for key in keys], pa.string()),
            "role": pa.array([key[3] for key in keys], pa.string()),
            "rule": pa.array([key[4] for key in keys], pa.string()),
            "run_key": pa.array(
                [run_key[key[5]][0] if key[5] else None for key in keys], pa.int32()
            ),
            "holder_key": pa.array(
                [run_key[key[5]][1] if key[5] else None for key in keys], pa.int32()
            ),
            "gpu_us": pa.array([found[key].gpu_us for key in keys], pa.int64()),
            "release_cpu_milli": pa.array([found[key].cpu_milli for key in keys], pa.int64()),
            "release_mem_mib": pa.array([found[key].mem_mib for key in keys], pa.int64()),
        }
    )
