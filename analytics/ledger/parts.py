"""Held time cut to slices, measured, and rounded to whole micro-GPU-seconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analytics.ledger.activity import PPM, Spans, measured, read_samples
from analytics.ledger.broken import Breakage
from analytics.ledger.fleet import Fleet
from analytics.ledger.frame import Frame
from analytics.ledger.held import Piece
from analytics.ledger.kernel.measure import Samples, mix
from analytics.ledger.kernel.state import Array
from analytics.ledger.slices import cut
from collector.store import Work


@dataclass(slots=True)
class Parts:
    """Pieces cut at the bounds of slices, as columns; ``active`` in ppm x us, one unit =
    1/per_gpu."""

    piece: Array
    slot: Array
    t0: Array
    t1: Array
    time: Array
    active: Array
    over: Array


def cut_and_measure(frame: Frame, broken: list[Breakage]) -> Parts:
    """Cut held pieces and find what samples say of each part; a broken GPU's say nothing."""
    work, cluster, fleet, held = frame.work, frame.facts.cluster, frame.fleet, frame.held
    pieces, bounds, per_gpu = held.pieces, frame.bounds, held.per_gpu
    t0 = np.array([piece.t0 for piece in pieces], np.int64)
    t1 = np.array([piece.t1 for piece in pieces], np.int64)
    which, slot, begin, end = cut(t0, t1, bounds)
    samples = read_samples(work, cluster, int(bounds[0]), int(bounds[-1]))
    _silence(work, samples, broken)
    # A shared GPU is one device: its samples measure the whole of it.
    gpus = np.array([max(piece.units // per_gpu, 1) for piece in pieces], np.int64)
    keys = _keys(work, fleet, pieces, per_gpu)
    spans = _spans(keys, which, begin, end)
    most = (end - begin) * gpus[which] if pieces else begin
    time, active, over = measured(samples, spans, most)
    return Parts(which, slot, begin, end, time, active, over)


def _silence(work: Work, samples: Samples, broken: list[Breakage]) -> None:
    """Drop what a GPU says of itself while it is broken."""
    named = [b for b in broken if b.gpu is not None]
    code = _hashes(work, sorted({b.gpu or "" for b in named}))
    for b in named:
        mine = (samples.unit == code[b.gpu or ""]) & (samples.ts > b.t0) & (samples.ts <= b.t1)
        samples.ppm[mine] = -1


def _keys(work: Work, fleet: Fleet, pieces: list[Piece], per_gpu: int) -> list[list[int]]:
    """Per way of finding samples (GPU, run, whole node) the key of each piece; 0 = none."""
    names = {piece.run_id for piece in pieces} | {node for node, _ in fleet.pools}
    names |= {piece.mig or piece.gpu or "" for piece in pieces}
    code = _hashes(work, sorted(names))
    keys: list[list[int]] = [[], [], []]
    for piece in pieces:
        node = fleet.pools[piece.pool][0]
        speaks = not piece.failed
        named = speaks and piece.gpu is not None and piece.alone
        unit = code[piece.mig or piece.gpu or ""]
        keys[0].append(int(mix(unit, 1)) if named else 0)
        whole = speaks and piece.gpu is None
        keys[1].append(int(mix(mix(code[node], code[piece.run_id]), 2)) if whole else 0)
        sole = whole and _all_of_it(fleet, piece, per_gpu)
        keys[2].append(int(mix(code[node], 3)) if sole else 0)
    return keys


def _all_of_it(fleet: Fleet, piece: Piece, per_gpu: int) -> bool:
    """Whether the run holds every GPU of the node, so that an untagged sample must be its own."""
    node = fleet.pools[piece.pool][0]
    return len(fleet.pools_of(node)) == 1 and any(
        t0 <= piece.t0 and piece.t1 <= t1 and piece.units == gpus * per_gpu
        for t0, t1, gpus in fleet.installed[piece.pool]
    )


def _hashes(work: Work, names: list[str]) -> dict[str, int]:
    table = work.query("SELECT hash(unnest(CAST(? AS VARCHAR[]))) AS code", [names])
    codes = table.column("code").to_numpy().view(np.int64)
    return dict(zip(names, codes.tolist(), strict=True))


def _spans(keys: list[list[int]], which: Array, t0: Array, t1: Array) -> Spans:
    columns = []
    for way in keys:
        key = np.array(way, np.int64)[which]
        part = np.flatnonzero(key)
        columns.append(np.stack([key[part], t0[part], t1[part], part]))
    key, begin, end, part = np.concatenate(columns, axis=1)
    order = np.lexsort((part, begin, key))
    key, begin, end, part = key[order], begin[order], end[order], part[order]
    # Two pools of one node under one run: samples do not tell them apart, the first one has them.
    keep = np.ones(key.shape[0], np.bool_)
    keep[1:] = (key[1:] != key[:-1]) | (begin[1:] >= end[:-1])
    return Spans(key[keep], begin[keep], end[keep], part[keep])


@dataclass(slots=True)
class Row:
    """Exact amounts of one (pool, GPU, run, slice), in units x us (x ppm where active)."""

    active: int = 0
    lost: int = 0
    measured: int = 0
    live: int = 0
    total: int = 0
    possibly: int = 0
    contested: int = 0


HELD_COLUMNS = ("used", "lost", "allocated_idle", "allocated_unmeasured", "failed_held")


def chain(steps: list[int], denominator: int, start: int = 0) -> list[int]:
    """Round a running sum half up and return the differences: never negative, exact in total."""
    posts, before = [], _half_up(start, denominator)
    for step in steps:
        start += step
        now = _half_up(start, denominator)
        posts.append(now - before)
        before = now
    return posts


def _half_up(amount: int, denominator: int) -> int:
    return (2 * amount + denominator) // (2 * denominator)


def steps(row: Row) -> list[int]:
    """A row's classes in the order of `HELD_COLUMNS`, in units x us x ppm."""
    return [
        row.active,
        row.lost,
        row.measured * PPM - row.active - row.lost,
        (row.live - row.measured) * PPM,
        (row.total - row.live) * PPM,
    ]
