"""From facts to the sweep's arrays: the cluster's state as differences in time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from analytics.ledger.broken import Breakage
from analytics.ledger.facts import Allocation, Facts
from analytics.ledger.fleet import FAILED_STATES, Fleet
from analytics.ledger.held import Held, Piece
from analytics.ledger.kernel import state as k
from analytics.ledger.kernel.fill import NEVER, Running
from analytics.ledger.kernel.sweep import Events, World
from analytics.ledger.pending import LEVELS, PendingJobs


@dataclass(slots=True)
class EventList:
    """Differences with their instants, clipped to ``[since, until)``."""

    since: int
    until: int
    rows: list[tuple[int, int, int, int]] = field(default_factory=list)

    def at(self, t: int, kind: int, idx: int, val: int) -> None:
        if t < self.until:
            self.rows.append((max(t, self.since), kind, idx, val))

    def span(self, kind: int, idx: int, val: int, t0: int, t1: int) -> None:
        """``val`` over ``[t0, t1)``."""
        if t0 < self.until and t1 > self.since and t0 < t1 and val:
            self.rows.append((max(t0, self.since), kind, idx, val))
            if t1 < self.until:
                self.rows.append((t1, kind, idx, -val))

    def arrays(self) -> Events:
        rows = np.array(sorted(self.rows, key=lambda row: row[0]), dtype=np.int64).reshape(-1, 4)
        return Events(*(np.ascontiguousarray(rows[:, column]) for column in range(4)))


def node_events(out: EventList, facts: Facts, fleet: Fleet) -> None:
    """Inventory, outages and coverage."""
    rank = {name: place for place, name in enumerate(fleet.nodes)}
    for pool, timeline in enumerate(fleet.installed):
        for t0, t1, gpus in timeline:
            out.span(k.INSTALLED, pool, gpus, t0, t1)
    for row in facts.pools:
        if row.node in rank:
            cpus = -1 if row.cpus is None else row.cpus * 1000
            out.at(row.t0, k.CPU_TOTAL, rank[row.node], cpus)
            out.at(row.t0, k.MEM_TOTAL, rank[row.node], -1 if row.mem_mib is None else row.mem_mib)
    _outages(out, facts, rank)


def _outages(out: EventList, facts: Facts, rank: dict[str, int]) -> None:
    for state in facts.states:
        if state.node is not None and state.node in rank:
            kind = k.FAILED if state.kind in FAILED_STATES else k.DRAINED
            out.span(kind, rank[state.node], 1, state.t0, state.t1)
    for window in facts.coverage:
        if window.kind == "scheduler" and window.node is None:
            out.span(k.COVERED_ALL, 0, 1, window.t0, window.t1)
        elif window.kind == "scheduler" and window.node in rank:
            out.span(k.COVERED, rank[window.node], 1, window.t0, window.t1)


def held_events(
    out: EventList, facts: Facts, fleet: Fleet, held: Held, loose: list[Breakage]
) -> None:
    """GPUs, CPUs and memory that runs hold, and GPUs that are broken and not held."""
    named: dict[tuple[int, str], list[Piece]] = defaultdict(list)
    for piece in held.pieces:
        if piece.gpu is None:
            out.span(k.HELD, piece.pool, piece.units // held.per_gpu, piece.t0, piece.t1)
        else:
            named[piece.pool, piece.gpu].append(piece)
    for (pool, _), pieces in named.items():
        for t0, t1 in spans_of(pieces):
            out.span(k.HELD, pool, 1, t0, t1)
    for breakage in loose:
        out.span(k.BROKEN, breakage.pool, 1, breakage.t0, breakage.t1)
    rank = {name: place for place, name in enumerate(fleet.nodes)}
    for (_, node), allocation in host_shares(facts).items():
        if node in rank:
            out.span(k.CPU, rank[node], allocation.cpus * 1000, allocation.t0, allocation.t1)
            out.span(k.MEM, rank[node], allocation.mem_mib, allocation.t0, allocation.t1)


def spans_of(pieces: list[Piece]) -> list[tuple[int, int]]:
    """When any of the pieces holds."""
    spans: list[tuple[int, int]] = []
    for t0, t1 in sorted((piece.t0, piece.t1) for piece in pieces):
        if spans and t0 <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], t1))
        else:
            spans.append((t0, t1))
    return spans


def host_shares(facts: Facts) -> dict[tuple[str, str], Allocation]:
    """CPU and memory of each (run, node), once, though every row of the run on the node repeats
    them."""
    shares: dict[tuple[str, str], Allocation] = {}
    for a in facts.allocations:
        known = shares.get((a.run_id, a.node))
        if known is None:
            shares[a.run_id, a.node] = a
        else:
            shares[a.run_id, a.node] = Allocation(
                a.run_id, a.node, a.model, None, None, max(a.gpus, known.gpus), 1, 1,
                max(a.cpus, known.cpus), max(a.mem_mib, known.mem_mib),
                min(a.t0, known.t0), max(a.t1, known.t1),
            )  # fmt: skip
    return shares


def reservation_events(out: EventList, facts: Facts, fleet: Fleet) -> tuple[k.Array, k.Array]:
    """Reservations in node order; returns their GPUs (-1 = all) and nodes."""
    rank = {name: place for place, name in enumerate(fleet.nodes)}
    kept = sorted(
        (r for r in facts.reservations if r.node in rank),
        key=lambda r: (rank[r.node], r.name, r.t0),
    )
    for place, r in enumerate(kept):
        out.span(k.RESERVED, place, 1, r.t0, r.t1)
    for a in facts.allocations if kept else ():
        run = facts.runs.get(a.run_id)
        for place, r in enumerate(kept):
            mine = not r.accounts or (run is not None and run.account in r.accounts)
            if r.node == a.node and mine:
                out.span(k.RESERVED_USED, place, a.gpus, max(a.t0, r.t0), min(a.t1, r.t1))
    gpus = np.array([-1 if r.gpus is None else r.gpus for r in kept], np.int64)
    return gpus, np.array([rank[r.node] for r in kept], np.int64)


def running_events(out: EventList, facts: Facts, fleet: Fleet, held: Held) -> Running:
    """What each run gives back when it ends, by its time limit."""
    rank = {name: place for place, name in enumerate(fleet.nodes)}
    rows: list[tuple[int, ...]] = []
    for piece in held.pieces:
        gpus = piece.units // held.per_gpu
        if gpus and not piece.failed:
            node = fleet.node_of[piece.pool]
            ends = _estimate(facts, piece.run_id)
            rows.append((ends, piece.pool, gpus, node, 0, 0, piece.t0, piece.t1))
    for (run_id, node_name), a in host_shares(facts).items():
        if node_name in rank and (a.cpus or a.mem_mib):
            ends = _estimate(facts, run_id)
            rows.append((ends, 0, 0, rank[node_name], a.cpus * 1000, a.mem_mib, a.t0, a.t1))
    rows.sort()
    for place, row in enumerate(rows):
        out.span(k.RUNS, place, 1, row[6], row[7])
    table = np.array(rows, np.int64).reshape(-1, 8)
    until, pool, count, place_of, cpu, mem = (np.ascontiguousarray(table[:, c]) for c in range(6))
    return Running(pool, count, place_of, cpu, mem, until, np.zeros(len(rows), np.int64))


def _estimate(facts: Facts, run_id: str) -> int:
    """When the scheduler must expect the run to end; NEVER without a limit."""
    run = facts.runs.get(run_id)
    if run is None or run.t0 is None or not run.limit_s:
        return NEVER
    return run.t0 + run.limit_s * 1_000_000


def world(
    fleet: Fleet,
    kept: tuple[k.Array, k.Array],
    pending: PendingJobs,
    parameters: k.Array,
    running: Running,
) -> World:
    """The empty state that the events fill."""
    n, p = len(fleet.nodes), len(fleet.pools)
    node = np.array(fleet.node_of, np.int64)
    places = np.arange(n)
    nodes = k.Nodes(
        failed=_zeros(n),
        drained=_zeros(n),
        covered=_zeros(n),
        cpu_used=_zeros(n),
        mem_used=_zeros(n),
        cpu_total=_zeros(n) - 1,
        mem_total=_zeros(n) - 1,
        pool_lo=np.searchsorted(node, places),
        pool_hi=np.searchsorted(node, places, "right"),
        kept_lo=np.searchsorted(kept[1], places),
        kept_hi=np.searchsorted(kept[1], places, "right"),
    )
    pools = k.Pools(node, _zeros(p), _zeros(p), _zeros(p), _zeros(p), domains(fleet))
    size = kept[0].shape[0]
    reservations = k.Kept(kept[0], _zeros(size), _zeros(size))
    return World(
        nodes, pools, reservations, kept[1], pending.jobs, pending.allowed, parameters, running
    )


def _zeros(size: int) -> k.Array:
    return np.zeros(size, np.int64)


def domains(fleet: Fleet) -> k.Array:
    """Per level and pool the number of its leaf switch, rack or spine; -1 = not known."""
    table = np.full((len(LEVELS), len(fleet.pools)), -1, np.int64)
    for level, name in enumerate(LEVELS):
        values = [getattr(rows[-1], name) for rows in fleet.inventory]
        rank = {value: i for i, value in enumerate(sorted({v for v in values if v is not None}))}
        table[level] = [rank.get(value, -1) for value in values]
    return table
