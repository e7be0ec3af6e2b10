"""What is free on every pool, from change to change."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from analytics.ledger.broken import Breakage
from analytics.ledger.facts import FOREVER
from analytics.ledger.frame import Frame
from analytics.ledger.host import HostShares
from analytics.ledger.kernel.state import Array
from analytics.ledger.order import in_order

UNKNOWN_CPU = 10**9
Timeline = tuple[Array, Array, Array, Array, Array]
"""pool, t0, t1, whole GPUs that are free, free CPU in thousandths."""


@dataclass(slots=True)
class _Differences:
    """Columns of (pool, instant, GPUs, CPU, out of order), clipped to ``[since, until)``."""

    since: int
    until: int
    without: Array
    parts: list[Array] = field(default_factory=list)

    def spans(self, column: int, pool: Array, t0: Array, t1: Array, amount: Array) -> None:
        """``amount`` in one of the last three columns over ``[t0, t1)``."""
        some = (t0 < self.until) & (t1 > self.since) & (t0 < t1) & ~np.isin(pool, self.without)
        ends = some & (t1 < self.until)
        for times, chosen, sign in ((np.maximum(t0, self.since), some, 1), (t1, ends, -1)):
            rows = np.zeros((int(chosen.sum()), 5), np.int64)
            rows[:, 0], rows[:, 1], rows[:, column] = (
                pool[chosen],
                times[chosen],
                sign * amount[chosen],
            )
            self.parts.append(rows)

    def few(self, column: int, rows: list[tuple[int, int, int, int]]) -> None:
        """Rows of (pool, t0, t1, amount)."""
        self.spans(column, *np.array(rows, np.int64).reshape(-1, 4).T)


_GPUS, _CPU, _OUT = 2, 3, 4


def free_states(
    frame: Frame, host: HostShares, loose: list[Breakage], since: int, until: int
) -> Timeline:
    """Every pool's free GPUs and its node's free CPU, from change to change; pools with GPUs held
    in parts are left out."""
    fleet, per_gpu, plain = frame.fleet, frame.held.per_gpu, frame.held.plain
    out = _Differences(since, until, np.array(sorted(shared_pools(frame)), np.int64))
    _installed(out, frame)
    shut = closed(frame, since, until)
    out.few(_OUT, [
        (pool, t0, t1, 1) for t0, t1, node in shut
        for pool in (range(len(fleet.pools)) if node is None else fleet.pools_of(node))
    ])  # fmt: skip
    out.spans(_GPUS, plain.pool, plain.t0, plain.t1, -(plain.units // per_gpu))
    out.few(_GPUS, [
        (p.pool, p.t0, p.t1, -1 if p.gpu is not None else -(p.units // per_gpu))
        for p in frame.held.pieces
    ])  # fmt: skip
    out.few(_GPUS, [(b.pool, b.t0, b.t1, -1) for b in loose])
    for nth in range(max((len(fleet.pools_of(node)) for node in fleet.nodes), default=0)):
        place = [(fleet.pools_of(node)[nth:] or [-1])[0] for node in fleet.nodes]
        pool = np.array(place, np.int64)[host.node]
        some = (pool >= 0) & (host.cpus > 0)
        out.spans(_CPU, pool[some], host.t0[some], host.t1[some], -1000 * host.cpus[some])
    return _accumulated(np.concatenate(out.parts), until)


def _installed(out: _Differences, frame: Frame) -> None:
    out.few(_GPUS, [
        (pool, t0, t1, gpus) for pool, timeline in enumerate(frame.fleet.installed)
        for t0, t1, gpus in timeline
    ])  # fmt: skip
    cpus = []
    for pool, own in enumerate(frame.fleet.inventory):
        for row, after in zip(own, [*own[1:], None], strict=True):
            there = UNKNOWN_CPU if row.cpus is None else row.cpus * 1000
            cpus.append((pool, row.t0, after.t0 if after else FOREVER, there))
    out.few(_CPU, cpus)


def _accumulated(rows: Array, until: int) -> Timeline:
    """Differences to states; what is out of order has nothing free."""
    order = in_order(rows[:, 0], rows[:, 1])
    rows = rows[order]
    first = np.ones(rows.shape[0], np.bool_)
    first[1:] = rows[1:, 0] != rows[:-1, 0]
    sums = np.cumsum(rows[:, 2:], axis=0)
    starts = np.flatnonzero(first)
    before = (sums - rows[:, 2:])[starts]
    sums -= np.repeat(before, np.diff(np.append(starts, rows.shape[0])), axis=0)
    end = np.append(rows[1:, 1], until) if rows.shape[0] else rows[:, 1]
    last = np.append(first[1:], True) if rows.shape[0] else first
    end = np.where(last, until, end)
    some = end > rows[:, 1]
    idle = np.where(sums[:, 2] > 0, 0, np.maximum(sums[:, 0], 0))
    cpu = np.maximum(sums[:, 1], 0)
    return rows[some, 0], np.ascontiguousarray(rows[some, 1]), end[some], idle[some], cpu[some]


def closed(frame: Frame, since: int, until: int) -> list[tuple[int, int, str | None]]:
    """When nodes are out of order or unknown; node None = all."""
    spans: list[tuple[int, int, str | None]] = [
        (state.t0, state.t1, state.node) for state in frame.facts.states
    ]
    own = {w.node for w in frame.facts.coverage if w.kind == "scheduler"}
    for node in own or {None}:
        at = since
        known = sorted(
            (w.t0, w.t1) for w in frame.facts.coverage
            if w.kind == "scheduler" and w.node in (None, node)
        )  # fmt: skip
        for t0, t1 in known:
            if t0 > at:
                spans.append((at, t0, node))
            at = max(at, t1)
        if at < until:
            spans.append((at, until, node))
    return spans


def shared_pools(frame: Frame) -> set[int]:
    """Pools with GPUs that are held in parts."""
    per_gpu = frame.held.per_gpu
    return {p.pool for p in frame.held.pieces if p.gpu is not None and p.units < per_gpu}
