"""From facts to the sweep's arrays: the cluster's state as differences in time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from analytics.ledger.broken import Breakage
from analytics.ledger.facts import Facts
from analytics.ledger.fleet import FAILED_STATES, Fleet
from analytics.ledger.held import Held, Piece, spans_of
from analytics.ledger.host import HostShares
from analytics.ledger.kernel import state as k
from analytics.ledger.order import stable_order
from analytics.ledger.pending import LEVELS


@dataclass(slots=True)
class EventList:
    """Differences with their instants, clipped to ``[since, until)``."""

    since: int
    until: int
    rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    many: list[k.Array] = field(default_factory=list)

    def at(self, t: int, kind: int, idx: int, val: int) -> None:
        if t < self.until:
            self.rows.append((max(t, self.since), kind, idx, val))

    def span(self, kind: int, idx: int, val: int, t0: int, t1: int) -> None:
        """``val`` over ``[t0, t1)``."""
        if t0 < self.until and t1 > self.since and t0 < t1 and val:
            self.rows.append((max(t0, self.since), kind, idx, val))
            if t1 < self.until:
                self.rows.append((t1, kind, idx, -val))

    def steps(self, rows: k.Array) -> None:
        """Rows of (instant, kind, idx, val)."""
        table = np.ascontiguousarray(rows[rows[:, 0] < self.until].T)
        table[0] = np.maximum(table[0], self.since)
        self.many.append(table)

    def few(self, kind: int, rows: list[tuple[int, int, int]]) -> None:
        """Rows of (idx, t0, t1), one each."""
        for idx, t0, t1 in rows:
            self.span(kind, idx, 1, t0, t1)

    def spans(self, kind: int, idx: k.Array, val: k.Array, t0: k.Array, t1: k.Array) -> None:
        """As many spans at once."""
        some = (t0 < self.until) & (t1 > self.since) & (t0 < t1) & (val != 0)
        ends = some & (t1 < self.until)
        for times, chosen, sign in ((np.maximum(t0, self.since), some, 1), (t1, ends, -1)):
            amounts = sign * val[chosen]
            kinds = np.full(amounts.shape[0], kind, np.int64)
            self.many.append(np.stack([times[chosen], kinds, idx[chosen], amounts]))

    def arrays(self) -> k.Array:
        """The sweep's table of events: instant, kind, idx, val, in order of time."""
        few = np.array(self.rows, np.int64).reshape(-1, 4).T
        table = np.concatenate([few, *self.many], axis=1)
        return np.ascontiguousarray(table[:, stable_order(table[0])])


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


def held_events(out: EventList, held: Held, host: HostShares, loose: list[Breakage]) -> None:
    """GPUs, CPUs and memory that runs hold, and GPUs that are broken and not held."""
    named: dict[tuple[int, str], list[Piece]] = defaultdict(list)
    plain = held.plain
    out.spans(k.HELD, plain.pool, plain.units // held.per_gpu, plain.t0, plain.t1)
    whole = []
    for piece in held.pieces:
        if piece.gpu is None:
            whole.append((piece.pool, piece.units // held.per_gpu, piece.t0, piece.t1))
        else:
            named[piece.pool, piece.gpu].append(piece)
    out.spans(k.HELD, *np.array(whole, np.int64).reshape(-1, 4).T)
    for (pool, _), pieces in named.items():
        for t0, t1 in spans_of(pieces):
            out.span(k.HELD, pool, 1, t0, t1)
    for breakage in loose:
        out.span(k.BROKEN, breakage.pool, 1, breakage.t0, breakage.t1)
    out.spans(k.CPU, host.node, host.cpus * 1000, host.t0, host.t1)
    out.spans(k.MEM, host.node, host.mem_mib, host.t0, host.t1)


def reservation_events(out: EventList, facts: Facts, fleet: Fleet) -> k.Array:
    """Reservations in node order; returns the sweep's table of them."""
    rank = {name: place for place, name in enumerate(fleet.nodes)}
    kept = sorted(
        (r for r in facts.reservations if r.node in rank),
        key=lambda r: (rank[r.node], r.name, r.t0),
    )
    for place, r in enumerate(kept):
        out.span(k.RESERVED, place, 1, r.t0, r.t1)
    on_node: dict[str, list[int]] = defaultdict(list)
    for place, r in enumerate(kept):
        on_node[r.node].append(place)
    claims = facts.allocations
    mine = [at for at, name in enumerate(claims.nodes) if name in on_node]
    for a in claims.at(np.flatnonzero(np.isin(claims.node, mine))):
        run = facts.runs.get(a.run_id)
        for place in on_node.get(a.node, ()):
            r = kept[place]
            if not r.accounts or (run is not None and run.account in r.accounts):
                out.span(k.RESERVED_USED, place, a.gpus, max(a.t0, r.t0), min(a.t1, r.t1))
    table = np.zeros((4, len(kept)), np.int64)
    table[k.K_GPUS] = [-1 if r.gpus is None else r.gpus for r in kept]
    table[k.K_NODE] = [rank[r.node] for r in kept]
    return table


def running_events(
    out: EventList, facts: Facts, fleet: Fleet, held: Held, host: HostShares
) -> k.Array:
    """What each run gives back when it ends, by its time limit: the sweep's table of runs."""
    plain, per_gpu = held.plain, held.per_gpu
    odd = [p for p in held.pieces if not p.failed and p.units >= per_gpu]
    odd_ends = facts.runs.expected_ends([p.run_id for p in odd])
    rows = [(p.pool, p.units // per_gpu, 0, p.t0, p.t1) for p in odd]
    some_odd = np.array(rows, np.int64).reshape(-1, 5)
    some_odd[:, 2] = odd_ends
    until = facts.runs.expected_ends(plain.runs)
    ends = until[plain.run] if plain.run.size else plain.run
    own = np.column_stack([plain.pool, plain.units // per_gpu, ends, plain.t0, plain.t1])
    gpus = np.concatenate([own, some_odd])
    some = (host.cpus > 0) | (host.mem_mib > 0)
    size, more = gpus.shape[0], int(some.sum())
    table = np.zeros((7, size + more), np.int64)
    table[k.R_POOL, :size], table[k.R_GPUS, :size] = gpus[:, 0], gpus[:, 1]
    table[k.R_NODE, :size] = np.array(fleet.node_of, np.int64)[gpus[:, 0]]
    until = facts.runs.expected_ends(host.runs)
    table[k.R_NODE, size:], table[k.R_CPU, size:] = host.node[some], host.cpus[some] * 1000
    table[k.R_MEM, size:] = host.mem_mib[some]
    ends = until[host.run[some]] if host.runs else host.run[some]
    table[k.R_ENDS] = np.concatenate([gpus[:, 2], ends])
    t0 = np.concatenate([gpus[:, 3], host.t0[some]])
    t1 = np.concatenate([gpus[:, 4], host.t1[some]])
    order = np.argsort(table[k.R_ENDS], kind="stable")
    places = np.arange(order.shape[0])
    out.spans(k.RUNS, places, np.ones_like(places), t0[order], t1[order])
    return np.ascontiguousarray(table[:, order])


def domains(fleet: Fleet) -> k.Array:
    """Per level and pool the number of its leaf switch, rack or spine; -1 = not known."""
    table = np.full((len(LEVELS), len(fleet.pools)), -1, np.int64)
    for level, name in enumerate(LEVELS):
        values = [getattr(rows[-1], name) for rows in fleet.inventory]
        rank = {value: i for i, value in enumerate(sorted({v for v in values if v is not None}))}
        table[level] = [rank.get(value, -1) for value in values]
    return table
