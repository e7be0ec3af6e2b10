"""Samples to activity: each speaks for the time since its device's last one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analytics.ledger.kernel.compiled import driver, leaf, maker
from analytics.ledger.kernel.state import Array

# Who is measured; typed, since numba compiles a function anew for every plain number.
GPU: Array = np.int64(1)
RUN: Array = np.int64(2)
NODE: Array = np.int64(3)


class Samples(NamedTuple):
    """Columns of the samples of a window."""

    ts: Array
    step: Array
    ppm: Array
    unit: Array
    node: Array
    run: Array
    idx: Array


@driver
def mix(a: int, b: int) -> int:
    """One key from two hashes."""
    x = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b)
    x ^= x >> np.uint64(29)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(32)
    return np.int64(x)  # type: ignore[return-value] # numba knows no int


@leaf
def _place(table: Array, key: int) -> int:
    """Where ``key`` is or belongs in an open table of (key, value + 1) rows; 0 = empty."""
    mask = table.shape[0] - 1
    at = np.int64(np.uint64(key) >> np.uint64(17)) & mask
    while table[at, 1] != 0 and table[at, 0] != key:
        at = (at + 1) & mask
    return int(at)


@maker
def _table(keys: Array) -> Array:
    """First position of each key in a sorted-by-key column."""
    size = 16
    while size < 4 * keys.shape[0]:
        size *= 2
    table = np.zeros((size, 2), np.int64)
    for i in range(keys.shape[0]):
        if i == 0 or keys[i] != keys[i - 1]:
            at = _place(table, keys[i])
            table[at, 0], table[at, 1] = keys[i], i + 1
    return table


@maker
def number_devices(samples: Samples) -> tuple[Array, int, bool]:
    """A number per sample's device, how many there are, and whether each one's times only rise."""
    size = 1 << 12
    table = np.zeros((size, 2), np.int64)
    last = np.full(size, -(2**62), np.int64)
    device = np.empty(samples.ts.shape[0], np.int64)
    n, rising = 0, True
    for i in range(samples.ts.shape[0]):
        unit = samples.unit[i]
        key = mix(mix(samples.node[i], unit), samples.idx[i] if unit == 0 else -7)
        at = _place(table, key)
        if table[at, 1] == 0:
            n += 1
            table[at, 0], table[at, 1] = key, n
            if 2 * n > size:
                size *= 2
                bigger = np.zeros((size, 2), np.int64)
                for row in range(table.shape[0]):
                    if table[row, 1] != 0:
                        spot = _place(bigger, table[row, 0])
                        bigger[spot, 0], bigger[spot, 1] = table[row, 0], table[row, 1]
                table = bigger
                longer = np.full(size, -(2**62), np.int64)
                longer[: last.shape[0]] = last
                last = longer
                at = _place(table, key)
        d = table[at, 1] - 1
        device[i] = d
        rising = rising and samples.ts[i] > last[d]
        last[d] = samples.ts[i]
    return device, n, rising


@leaf
def _find(table: Array, keys: Array, t0: Array, t1: Array, key: int, a: int) -> int:
    """The first span of ``key`` that ends after ``a``, or -1."""
    at = _place(table, key)
    if table[at, 1] == 0:
        return -1
    i = table[at, 1] - 1
    # Spans are few per key and time moves on: gallop, then halve.
    step = 1
    lo = i
    while i + step < keys.shape[0] and keys[i + step] == key and t1[i + step] <= a:
        lo = i + step
        step *= 2
    hi = i + step
    while lo < hi:
        mid = (lo + hi) // 2
        if mid < keys.shape[0] and keys[mid] == key and t1[mid] <= a:
            lo = mid + 1
        else:
            hi = mid
    if lo < keys.shape[0] and keys[lo] == key:
        return int(lo)
    return -1


@maker
def measure(
    samples: Samples, device: Array, devices: int, order: Array, spans: tuple[Array, Array, Array]
) -> Array:
    """Rows ``(span, device, measured us, active ppm x us)``; a device may have several rows per
    span."""
    keys, t0, t1 = spans
    table = _table(keys)
    before = np.full(devices, -(2**62), np.int64)
    current = np.full((devices, 3), -1, np.int64)
    out, n = np.empty((1024, 4), np.int64), 0
    for o in range(samples.ts.shape[0]):
        i = order[o] if order.shape[0] else o
        d, ts = device[i], samples.ts[i]
        a = max(before[d], ts - 2 * samples.step[i])
        if ts == before[d]:
            continue  # a double
        before[d] = ts
        if samples.ppm[i] < 0:
            continue
        found = -1
        for way in range(3):
            if way == 0:
                if samples.unit[i] == 0:
                    continue
                key = mix(samples.unit[i], GPU)
            elif way == 1:
                if samples.run[i] == 0:
                    continue
                key = mix(mix(samples.node[i], samples.run[i]), RUN)
            else:
                if samples.run[i] != 0:
                    continue
                key = mix(samples.node[i], NODE)
            found = _find(table, keys, t0, t1, key, a)
            if found >= 0 and t0[found] < ts:
                break
            found = -1
        while found >= 0 and found < keys.shape[0] and keys[found] == key and t0[found] < ts:
            covered = min(ts, t1[found]) - max(a, t0[found])
            if covered > 0:
                if current[d, 0] != found:
                    if current[d, 0] >= 0:
                        if n == out.shape[0]:
                            bigger = np.empty((2 * n, 4), np.int64)
                            bigger[:n] = out
                            out = bigger
                        out[n, 0], out[n, 1] = current[d, 0], d
                        out[n, 2], out[n, 3] = current[d, 1], current[d, 2]
                        n += 1
                    current[d, 0], current[d, 1], current[d, 2] = found, 0, 0
                current[d, 1] += covered
                current[d, 2] += covered * samples.ppm[i]
            found += 1
    tail = np.empty((n + devices, 4), np.int64)
    tail[:n] = out[:n]
    for d in range(devices):
        if current[d, 0] >= 0:
            tail[n, 0], tail[n, 1], tail[n, 2], tail[n, 3] = (
                current[d, 0],
                d,
                current[d, 1],
                current[d, 2],
            )
            n += 1
    return tail[:n]


@driver
def add_up(rows: Array, most: Array, time: Array, active: Array, over: Array) -> None:
    """Add device by device; a device that would measure more than is held counts as
    contradiction."""
    i = 0
    while i < rows.shape[0]:
        part, device, m, a = rows[i, 0], rows[i, 1], 0, 0
        while i < rows.shape[0] and rows[i, 0] == part and rows[i, 1] == device:
            m += rows[i, 2]
            a += rows[i, 3]
            i += 1
        if time[part] + m <= most[part]:
            time[part] += m
            active[part] += a
        else:
            over[part] += m
