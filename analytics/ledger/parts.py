"""Held time cut to slices, measured, and rounded to whole micro-GPU-seconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analytics.ledger.activity import PPM, Seen, Source, Spans, measured
from analytics.ledger.boardpower import idle_floors
from analytics.ledger.broken import Breakage
from analytics.ledger.fleet import Fleet
from analytics.ledger.frame import Frame
from analytics.ledger.kernel import lookup as d
from analytics.ledger.kernel.state import Array
from analytics.ledger.order import stable_order
from analytics.ledger.piececolumns import PieceColumns, columns_of
from analytics.ledger.settings import LedgerSettings
from analytics.ledger.slices import cut
from collector.store import Work


@dataclass(slots=True)
class Parts:
    """Pieces cut at the bounds of slices, as columns; ``active`` and ``untouched`` in ppm x us, one
    unit = 1/per_gpu."""

    columns: PieceColumns
    piece: Array
    slot: Array
    t0: Array
    t1: Array
    time: Array
    active: Array
    over: Array
    hang: Array
    untouched: Array
    no_process: Array
    apart: Array
    seen: Seen
    spare: Array


def cut_and_measure(frame: Frame, broken: list[Breakage], settings: LedgerSettings) -> Parts:
    """Cut held pieces and find what samples say of each part; a broken GPU's say nothing."""
    work, held, bounds = frame.work, frame.held, frame.bounds
    columns = columns_of(held)
    which, slot, begin, end = cut(columns.t0, columns.t1, bounds)
    # A shared GPU is one device: its samples measure the whole of it.
    gpus = np.maximum(columns.units // held.per_gpu, 1)
    spans = _spans(frame, columns, settings, (which, begin, end))
    named = [b for b in broken if b.gpu is not None]
    code = hashes(work, [b.gpu or "" for b in named]).tolist()
    silent = list(zip(code, named, strict=True))
    source = Source(work, frame.facts.cluster, bounds, settings, silent)
    gang = columns.run[which] * bounds.shape[0] + slot
    found = measured(source, spans, (end - begin) * gpus[which], gang)
    return Parts(
        columns, which, slot, begin, end, found.time, found.active, found.over, found.hang,
        found.untouched, found.no_process, np.zeros_like(found.hang), found.seen, found.spare,
    )  # fmt: skip


def hashes(work: Work, names: list[str]) -> Array:
    """The store's own hash of each name."""
    if not names:
        return np.zeros(0, np.int64)
    table = work.query("SELECT hash(unnest(CAST(? AS VARCHAR[]))) AS code", [names])
    return table.column("code").to_numpy().view(np.int64)


def _keys(frame: Frame, columns: PieceColumns) -> list[Array]:
    """Per way of finding samples (GPU, run, whole node) the key of each piece; 0 = none."""
    fleet, work = frame.fleet, frame.work
    node = hashes(work, [node for node, _ in fleet.pools])[columns.pool]
    claims = frame.facts.allocations
    codes = dict(zip(claims.runs, claims.run_codes.tolist(), strict=True))
    run = np.array([codes[name] for name in columns.runs], np.int64)[columns.run]
    unit = np.append(hashes(work, columns.units_named), 0)[columns.unit]
    speaks = columns.failed == 0
    whole = speaks & (columns.gpu < 0)
    sole = whole & _all_of_it(fleet, columns, frame.held.per_gpu)
    return [
        np.where(speaks & (columns.gpu >= 0) & (columns.alone > 0), unit ^ d.GPU, 0),
        np.where(whole, node ^ (run >> 1) ^ d.RUN, 0),
        np.where(sole, node ^ d.NODE, 0),
    ]


def _all_of_it(fleet: Fleet, columns: PieceColumns, per_gpu: int) -> Array:
    """Whether the run holds every GPU of the node, so that an untagged sample must be its own."""
    alone = np.bincount(fleet.node_of, minlength=1)[np.array(fleet.node_of, np.int64)] == 1
    gpus = columns.units // per_gpu
    most = np.array([max((n for *_, n in t), default=0) for t in fleet.installed], np.int64)
    least = np.array([min((n for *_, n in t), default=0) for t in fleet.installed], np.int64)
    likely = alone[columns.pool] & (gpus >= least[columns.pool]) & (gpus <= most[columns.pool])
    # Most pools are what they are all the time.
    first = np.array([(t or [(0, 0, 0)])[0] for t in fleet.installed], np.int64).reshape(-1, 3)
    once = np.array([len(t) == 1 for t in fleet.installed], np.bool_)[columns.pool]
    t0, t1, there = first[columns.pool].T
    sole: Array = likely & once & (t0 <= columns.t0) & (columns.t1 <= t1)
    sole &= columns.units == there * per_gpu
    for place in np.flatnonzero(likely & ~once).tolist():
        units, begin, end = columns.units[place], columns.t0[place], columns.t1[place]
        sole[place] = any(
            t0 <= begin and end <= t1 and units == n * per_gpu
            for t0, t1, n in fleet.installed[columns.pool[place]]
        )
    return sole


def _spans(
    frame: Frame, columns: PieceColumns, settings: LedgerSettings, parts: tuple[Array, Array, Array]
) -> Spans:
    which, t0, t1 = parts
    floors = idle_floors(frame, settings.hang_power_ratio)
    tables = []
    for way, keys in enumerate(_keys(frame, columns) if which.shape[0] else []):
        key = keys[which]
        part = np.flatnonzero(key)
        power = floors[columns.pool[which[part]]]
        named = np.full(part.shape[0], way == 0, np.int64)
        tables.append(np.column_stack([key[part], t0[part], t1[part], part, power, named]))
    table = np.concatenate([np.zeros((0, 6), np.int64), *tables])
    table = _by_key(table)
    # Two pools of one node under one run: samples do not tell them apart, the first one has them.
    keep = np.ones(table.shape[0], np.bool_)
    same = table[1:, d.S_KEY] == table[:-1, d.S_KEY]
    keep[1:] = ~same | (table[1:, d.S_T0] >= table[:-1, d.S_T1])
    return Spans(table[keep])


def _by_key(table: Array) -> Array:
    """Spans in the order (key, begin, part). Those of a key mostly are in order of time already."""
    # The upper bits of a hash tell it apart as well as all of them; the check below sees to it.
    table = table[stable_order(table[:, d.S_KEY] >> table.shape[0].bit_length() + 2)]
    key, t0, part = table[:, d.S_KEY], table[:, d.S_T0], table[:, d.S_PART]
    later = (t0[1:] > t0[:-1]) | ((t0[1:] == t0[:-1]) & (part[1:] > part[:-1]))
    if ((key[1:] > key[:-1]) | (key[1:] == key[:-1]) & later).all():
        return table
    return table[np.lexsort((part, t0, key))]


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
    hang: int = 0
    no_process: int = 0
    apart: int = 0
    untouched: int = 0


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
