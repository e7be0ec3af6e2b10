"""What is free on every pool, from change to change."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from analytics.ledger.broken import Breakage
from analytics.ledger.facts import FOREVER
from analytics.ledger.frame import Frame
from analytics.ledger.host import HostShares
from analytics.ledger.kernel.state import Array

UNKNOWN_CPU = 10**9
Timeline = tuple[Array, Array, Array, Array, Array]
"""pool, t0, t1, whole GPUs that are free, free CPU in thousandths."""


@dataclass(slots=True)
class _Differences:
    """Rows of (pool, instant, GPUs, CPU, out of order), clipped to ``[since, until)``."""

    since: int
    until: int
    without: set[int]
    rows: list[tuple[int, int, int, int, int]] = field(default_factory=list)

    def span(self, pool: int, t0: int, t1: int, gpus: int = 0, cpu: int = 0, out: int = 0) -> None:
        if t0 < self.until and t1 > self.since and t0 < t1 and pool not in self.without:
            self.rows.append((pool, max(t0, self.since), gpus, cpu, out))
            if t1 < self.until:
                self.rows.append((pool, t1, -gpus, -cpu, -out))


def free_states(
    frame: Frame, host: HostShares, loose: list[Breakage], since: int, until: int
) -> Timeline:
    """Every pool's free GPUs and its node's free CPU, from change to change; pools with GPUs held
    in parts are left out."""
    fleet, per_gpu = frame.fleet, frame.held.per_gpu
    out = _Differences(since, until, shared_pools(frame))
    _installed(out, frame)
    for t0, t1, node in closed(frame, since, until):
        for pool in range(len(fleet.pools)) if node is None else fleet.pools_of(node):
            out.span(pool, t0, t1, out=1)
    for piece in frame.held.pieces:
        gpus = 1 if piece.gpu is not None else piece.units // per_gpu
        out.span(piece.pool, piece.t0, piece.t1, gpus=-gpus)
    for breakage in loose:
        out.span(breakage.pool, breakage.t0, breakage.t1, gpus=-1)
    for node, cpus, begin, end in zip(
        host.node.tolist(), host.cpus.tolist(), host.t0.tolist(), host.t1.tolist(), strict=True
    ):
        for pool in fleet.pools_of(fleet.nodes[node]) if cpus else ():
            out.span(pool, begin, end, cpu=-1000 * cpus)
    return _accumulated(np.array(out.rows, np.int64).reshape(-1, 5), until)


def _installed(out: _Differences, frame: Frame) -> None:
    for pool, timeline in enumerate(frame.fleet.installed):
        for t0, t1, gpus in timeline:
            out.span(pool, t0, t1, gpus=gpus)
        own = frame.fleet.inventory[pool]
        for row, after in zip(own, [*own[1:], None], strict=True):
            cpus = UNKNOWN_CPU if row.cpus is None else row.cpus * 1000
            out.span(pool, row.t0, after.t0 if after else FOREVER, cpu=cpus)


def _accumulated(rows: Array, until: int) -> Timeline:
    """Differences to states; what is out of order has nothing free."""
    order = np.lexsort((rows[:, 1], rows[:, 0]))
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
