"""Whose a sample is and for whom it speaks: devices by name, spans by who may speak for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from analytics.ledger.kernel.compiled import driver, leaf
from analytics.ledger.kernel.state import Array

# Who is measured: a GPU by its name, a run's devices on a node, a node's untagged devices. Marks
# that keep keys of the three ways apart.
GPU: Any = np.int64(0x2545F4914F6CDD1D)
RUN: Any = np.int64(0x1B873593CC9E2D51)
NODE: Any = np.int64(0x52DCE729DA3ED7B5)

# Columns of `spans`, in the order (key, t0). POWER = at most so much and nothing works (mW, 0 =
# not known).
S_KEY, S_T0, S_T1, S_PART, S_POWER, S_NAMED = range(6)
# Columns of `devices`: who it is, what it said last, the span it is in, and what it measured of it;
# of memory while no run is named: last sample, slot, time in it and its peak (ppm); VAIN = until
# then nobody holds what names no run. What each sample touches comes first; a row is three lines of
# the processor's cache.
(
    V_NODE, V_UNIT, V_BEFORE, V_RUN, V_SPAN, V_T0, V_T1, V_TIME, V_ACTIVE, V_PEAK, V_PROCESSES,
    V_POWER, V_HANG, V_LINK, V_IDX, V_NEXT, V_NAMED, V_LONE, V_SLOT, V_SPARE, V_FULLEST, V_VAIN,
) = range(22)  # fmt: skip
DEVICE_COLUMNS = 24
# Places of `at`: next sample, devices known, device of the last sample, rows in `out`, whether
# samples are in order of device and time; the hash of no run, begin of the hours that samples are
# counted for, the last instant that counts, whether a GPU is in use that names no run, and rows in
# `spare`.
(
    M_NEXT, M_DEVICES, M_LAST, M_OUT, M_SORTED, M_NO_RUN, M_SINCE, M_LAST_TS, M_LOOSE, M_SPARE,
) = range(10)  # fmt: skip
AT = 10
# Columns of `out`: part, device, measured us, active ppm x us, suspected us, peak of memory (ppm)
# and of processes, both -1 where not measured.
OUT_COLUMNS = 7
# Columns of `spare`: device, slot, us sampled without a run, peak of memory (ppm).
SPARE_COLUMNS = 4
DONE, BACKWARD, CROWDED, FULL = range(4)
# Places of `floors`: occupied above which a device is busy, then the idle floors.
F_BUSY, F_SM, F_LINK = range(3)
FIRST: Any = np.int64(-(2**62))
NEVER: Any = np.int64(2**62)


class Batch(NamedTuple):
    """Columns of samples, as they were stored; -1 = not measured, unit 0 = not named. ``since``:
    the instant before which a sample says nothing."""

    ts: Array
    step_s: Array
    util: Array
    node: Array
    unit: Array
    run: Array
    idx: Array
    sm: Array
    power: Array
    used: Array
    total: Array
    link: Array
    processes: Array
    since: Array


@leaf
def pair(a: int, b: int) -> int:
    """One key from two hashes."""
    return a ^ (b >> 1)


@leaf
def _spot(index: Array, keys: Array, key: int) -> int:
    """Where ``key`` is or belongs in an open table of places + 1; 0 = empty."""
    mask = index.shape[0] - 1
    at = (key >> 17) & mask
    while index[at] != 0 and keys[index[at] - 1] != key:
        at = (at + 1) & mask
    return int(at)


@driver
def index_spans(spans: Array, index: Array) -> None:
    """Enter the first span of each key into the empty ``index`` (a power of two long)."""
    keys = spans[:, S_KEY]
    for i in range(spans.shape[0]):
        if i == 0 or keys[i] != keys[i - 1]:
            index[_spot(index, keys, keys[i])] = i + 1


@leaf
def _from(spans: Array, index: Array, key: int, a: int) -> int:
    """The first span of ``key`` that ends after ``a``, or -1."""
    keys, t1, n = spans[:, S_KEY], spans[:, S_T1], spans.shape[0]
    if n == 0:
        return -1
    lo = index[_spot(index, keys, key)] - 1
    if lo < 0:
        return -1
    # Spans are few per key and time moves on: gallop, then halve.
    step = 1
    at = lo
    while at + step < n and keys[at + step] == key and t1[at + step] <= a:
        lo = at + step
        step *= 2
    hi = at + step
    while lo < hi:
        mid = (lo + hi) // 2
        if mid < n and keys[mid] == key and t1[mid] <= a:
            lo = mid + 1
        else:
            hi = mid
    return int(lo) if lo < n and keys[lo] == key else -1


@leaf
def _home(node: int, unit: int, idx: int, mask: int) -> int:
    return int((pair(node ^ idx, unit) >> 17) & mask)


@driver
def enter(devices: Array, count: int, table: Array) -> None:
    """Enter the known devices into an empty open table of numbers + 1 (a power of two long)."""
    mask = table.shape[0] - 1
    for d in range(count):
        spot = _home(devices[d, V_NODE], devices[d, V_UNIT], devices[d, V_IDX], mask)
        while table[spot] != 0:
            spot = (spot + 1) & mask
        table[spot] = d + 1


@leaf
def _is(devices: Array, d: int, node: int, unit: int, idx: int) -> bool:
    place: Any = np.uint64(d)  # unsigned: not counted from the end
    known = devices[place, V_NODE] == node and devices[place, V_UNIT] == unit
    return bool(known and (unit != 0 or devices[place, V_IDX] == idx))


@leaf
def device_of(batch: Batch, i: int, devices: Array, table: Array, at: Array) -> int:
    """The number of the sample's device, a new one for a new device; -1 = no room for it.

    Devices mostly come round in the same order.
    """
    node, unit, idx = batch.node[i], batch.unit[i], batch.idx[i]
    last, known = at[M_LAST], at[M_DEVICES]
    # The one that first came after it, guessed without waiting for memory, or came after it lately.
    d = last + 1
    if d < known and _is(devices, d, node, unit, idx):
        at[M_LAST] = d
        return int(d)
    d = devices[last, V_NEXT]
    if known > 0 and _is(devices, d, node, unit, idx):
        at[M_LAST] = d
        return int(d)
    mask = table.shape[0] - 1
    spot = _home(node, unit, idx, mask)
    while table[spot] != 0:
        d = table[spot] - 1
        if _is(devices, d, node, unit, idx):
            break
        spot = (spot + 1) & mask
    if table[spot] == 0:
        d = at[M_DEVICES]
        if d == devices.shape[0]:
            return -1
        table[spot] = d + 1
        devices[d, V_NODE], devices[d, V_UNIT], devices[d, V_IDX] = node, unit, idx
        devices[d, V_BEFORE], devices[d, V_LINK], devices[d, V_SPAN] = FIRST, -1, -1
        devices[d, V_NAMED], devices[d, V_LONE], devices[d, V_SLOT] = -1, 0, -1
        devices[d, V_VAIN] = FIRST
        at[M_DEVICES] += 1
    devices[last, V_NEXT] = d
    at[M_LAST] = d
    return int(d)


@leaf
def first_span(
    batch: Batch, i: int, a: int, d: int, devices: Array, spans: Array, index: Array, no_run: int
) -> int:
    """Whom the sample speaks for: who holds its GPU by name, its run, or the node's sole run; -1 =
    nobody."""
    unit, run, ts = batch.unit[i], batch.run[i], batch.ts[i]
    if run == no_run and ts <= devices[d, V_VAIN]:
        return -1
    if devices[d, V_NAMED] < 0:
        held = (
            unit != 0
            and spans.shape[0] > 0
            and index[_spot(index, spans[:, S_KEY], unit ^ GPU)] > 0
        )
        devices[d, V_NAMED] = 1 if held else 0
    vain = NEVER
    if devices[d, V_NAMED]:
        found = _from(spans, index, unit ^ GPU, a)
        if found >= 0:
            if spans[found, S_T0] < ts:
                return int(found)
            vain = spans[found, S_T0]
    key = batch.node[i] ^ NODE if run == no_run else pair(batch.node[i], run) ^ RUN
    found = _from(spans, index, key, a)
    if found >= 0:
        if spans[found, S_T0] < ts:
            return int(found)
        vain = min(vain, spans[found, S_T0])
    if run == no_run:
        devices[d, V_VAIN] = vain
    return -1
