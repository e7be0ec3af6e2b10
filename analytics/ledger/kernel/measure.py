"""Samples to activity: each speaks for the time since its device's last one.

Samples come in batches, in the order in which they were stored; what the loop knows of a device
outlives the batch.
"""

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
# Columns of `devices`: who it is, what it said last, the span it is in, and what it measured of it.
(
    V_NODE, V_UNIT, V_IDX, V_NEXT, V_BEFORE, V_RUN, V_LINK, V_NAMED, V_SPAN, V_T0, V_T1, V_POWER,
    V_TIME, V_ACTIVE, V_HANG, V_PEAK, V_PROCESSES,
) = range(17)  # fmt: skip
DEVICE_COLUMNS = 17
# Places of `at`: next sample, devices known, device of the last sample, rows in `out`, whether
# samples are in order of device and time.
M_NEXT, M_DEVICES, M_LAST, M_OUT, M_SORTED = range(5)
# Columns of `out`: part, device, measured us, active ppm x us, suspected us, peak of memory (ppm)
# and of processes, both -1 where not measured.
OUT_COLUMNS = 7
DONE, BACKWARD, CROWDED, FULL = range(4)
# Places of `floors`: occupied above which a device is busy, then the idle floors.
F_BUSY, F_SM, F_LINK = range(3)
FIRST: Any = np.int64(-(2**62))
NEVER: Any = np.int64(2**62)


class Tables(NamedTuple):
    """What the loop works in: spans and their index, devices and theirs, room for rows."""

    spans: Array
    index: Array
    devices: Array
    table: Array
    out: Array
    floors: Array


class Batch(NamedTuple):
    """Columns of samples, as they were stored; -1 = not measured, hash 0 = not named."""

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
def _find(spans: Array, index: Array, key: int, a: int, ts: int) -> int:
    """The first span of ``key`` that ends after ``a`` and begins before ``ts``, or -1."""
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
    if lo < n and keys[lo] == key and spans[lo, S_T0] < ts:
        return int(lo)
    return -1


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
    known = devices[d, V_NODE] == node and devices[d, V_UNIT] == unit
    return bool(known and (unit != 0 or devices[d, V_IDX] == idx))


@leaf
def _device(batch: Batch, i: int, devices: Array, table: Array, at: Array) -> int:
    """The number of the sample's device, a new one for a new device; -1 = no room for it.

    Devices mostly come round in the same order.
    """
    node, unit, idx = batch.node[i], batch.unit[i], batch.idx[i]
    last = at[M_LAST]
    d = devices[last, V_NEXT]
    if at[M_DEVICES] > 0 and _is(devices, d, node, unit, idx):
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
        devices[d, V_NAMED] = -1
        at[M_DEVICES] += 1
    devices[last, V_NEXT] = d
    at[M_LAST] = d
    return int(d)


@leaf
def _first_span(
    batch: Batch, i: int, a: int, d: int, devices: Array, spans: Array, index: Array
) -> int:
    """Whom the sample speaks for: who holds its GPU by name, its run, or the node's sole run."""
    unit, run, ts = batch.unit[i], batch.run[i], batch.ts[i]
    if devices[d, V_NAMED] < 0:
        held = (
            unit != 0
            and spans.shape[0] > 0
            and index[_spot(index, spans[:, S_KEY], unit ^ GPU)] > 0
        )
        devices[d, V_NAMED] = 1 if held else 0
    if devices[d, V_NAMED]:
        found = _find(spans, index, unit ^ GPU, a, ts)
        if found >= 0:
            return found
    if run != 0:
        return _find(spans, index, pair(batch.node[i], run) ^ RUN, a, ts)
    return _find(spans, index, batch.node[i] ^ NODE, a, ts)


@leaf
def _hangs(batch: Batch, i: int, traffic: int, since: int, power: int, floors: Array) -> bool:
    """Busy, and every intensity that is measured, two at least, at its idle floor."""
    if batch.util[i] < floors[F_BUSY]:
        return False
    known = 0
    if batch.sm[i] >= 0:
        known += 1
        if batch.sm[i] > floors[F_SM]:
            return False
    if batch.power[i] >= 0 and power > 0:
        known += 1
        if batch.power[i] > power:
            return False
    if traffic >= 0:
        known += 1
        if traffic * 1e6 > floors[F_LINK] * (batch.ts[i] - since):
            return False
    return known >= 2


@leaf
def _hand_out(devices: Array, d: int, spans: Array, out: Array, at: Array) -> None:
    n = at[M_OUT]
    out[n, 0], out[n, 1] = spans[devices[d, V_SPAN], S_PART], d
    out[n, 2], out[n, 3] = devices[d, V_TIME], devices[d, V_ACTIVE]
    out[n, 4], out[n, 5] = devices[d, V_HANG], devices[d, V_PEAK]
    out[n, 6] = devices[d, V_PROCESSES]
    at[M_OUT] = n + 1


@leaf
def _enter_span(devices: Array, d: int, s: int, spans: Array) -> None:
    devices[d, V_SPAN], devices[d, V_PEAK], devices[d, V_POWER] = s, -1, spans[s, S_POWER]
    # A span found otherwise does not hold for a GPU that somebody holds by name.
    sure = spans[s, S_NAMED] or not devices[d, V_NAMED]
    devices[d, V_T0] = spans[s, S_T0] if sure else NEVER
    devices[d, V_T1] = spans[s, S_T1]
    devices[d, V_TIME], devices[d, V_ACTIVE], devices[d, V_HANG] = 0, 0, 0
    devices[d, V_PROCESSES] = -1


@leaf
def _speak(
    batch: Batch, i: int, d: int, covered: int, traffic: tuple[int, int], devices: Array,
    floors: Array,
) -> None:  # fmt: skip
    """Add so much time to the span that the device is in."""
    devices[d, V_TIME] += covered
    devices[d, V_ACTIVE] += covered * np.int64(batch.util[i] * 1e6 + 0.5)
    if batch.total[i] > 0 and 0 <= batch.used[i] <= batch.total[i]:
        peak = np.int64(batch.used[i] / batch.total[i] * 1e6)
        devices[d, V_PEAK] = max(devices[d, V_PEAK], peak)
    devices[d, V_PROCESSES] = max(devices[d, V_PROCESSES], batch.processes[i])
    if _hangs(batch, i, traffic[0], traffic[1], devices[d, V_POWER], floors):
        devices[d, V_HANG] += covered


@leaf
def _spread(
    batch: Batch, i: int, d: int, span: tuple[int, int, int, int], tables: Tables, at: Array
) -> None:
    """Give the time since ``a`` to the spans from ``s`` on."""
    s, a, traffic, before = span
    devices, spans, ts = tables.devices, tables.spans, batch.ts[i]
    while True:
        covered = min(ts, spans[s, S_T1]) - max(a, spans[s, S_T0])
        if covered > 0:
            if devices[d, V_SPAN] != s:
                if devices[d, V_SPAN] >= 0:
                    _hand_out(devices, d, spans, tables.out, at)
                _enter_span(devices, d, s, spans)
            _speak(batch, i, d, covered, (traffic, before), devices, tables.floors)
        if ts <= spans[s, S_T1] or s + 1 == spans.shape[0]:
            return
        s += 1
        if spans[s, S_KEY] != spans[s - 1, S_KEY] or spans[s, S_T0] >= ts:
            return


@leaf
def _traffic(batch: Batch, i: int, d: int, devices: Array) -> int:
    """Bytes over the links since the device's last sample; -1 = not measured."""
    if not batch.link[i] >= 0:
        return -1
    link, before = np.int64(batch.link[i]), devices[d, V_LINK]
    devices[d, V_LINK] = link
    return int(link - before) if 0 <= before <= link else -1


@driver
def measure(batch: Batch, tables: Tables, at: Array) -> int:
    """Read on from ``at[M_NEXT]``; why it stopped: DONE, BACKWARD (a device's time did not rise),
    CROWDED (no room for another device) or FULL (no room in ``out``)."""
    devices, spans = tables.devices, tables.spans
    while at[M_NEXT] < batch.ts.shape[0]:
        i = at[M_NEXT]
        if tables.out.shape[0] - at[M_OUT] <= spans.shape[0]:
            return FULL
        d = _device(batch, i, devices, tables.table, at)
        if d < 0:
            return CROWDED
        ts, before = batch.ts[i], devices[d, V_BEFORE]
        at[M_NEXT] = i + 1
        if ts <= before:
            if not at[M_SORTED]:
                return BACKWARD
            continue  # a double
        devices[d, V_BEFORE] = ts
        traffic = _traffic(batch, i, d, devices)
        if not 0 <= batch.util[i] <= 1:
            continue
        a = max(before, ts - 2 * np.int64(batch.step_s[i] * 1e6 + 0.5))
        known = devices[d, V_SPAN] >= 0 and batch.run[i] == devices[d, V_RUN]
        if known and devices[d, V_T0] <= a and ts <= devices[d, V_T1]:
            _speak(batch, i, d, ts - a, (traffic, before), devices, tables.floors)
            continue
        s = _first_span(batch, i, a, d, devices, spans, tables.index)
        if s >= 0:
            devices[d, V_RUN] = batch.run[i]
            _spread(batch, i, d, (s, a, traffic, before), tables, at)
    return DONE


@driver
def add_up(rows: Array, most: Array, sums: Array) -> None:
    """Add device by device to ``sums`` (rows: measured us, active ppm x us, us beyond what is held,
    suspected us, untouched memory ppm x us, suspected us without a process); a device that would
    measure more than is held counts as contradiction. ``rows`` are in order of part and device;
    their last column is time without a process by now."""
    i = 0
    while i < rows.shape[0]:
        part, device = rows[i, 0], rows[i, 1]
        m, a, hang, untouched, absent = 0, 0, 0, 0, 0
        while i < rows.shape[0] and rows[i, 0] == part and rows[i, 1] == device:
            m += rows[i, 2]
            a += rows[i, 3]
            hang += rows[i, 4]
            absent += rows[i, 6]
            if rows[i, 5] >= 0:
                untouched += rows[i, 2] * (1_000_000 - rows[i, 5])
            i += 1
        if sums[0, part] + m <= most[part]:
            sums[0, part] += m
            sums[1, part] += a
            sums[3, part] += hang
            sums[4, part] += untouched
            sums[5, part] += absent
        else:
            sums[2, part] += m
