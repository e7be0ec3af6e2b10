"""Samples to activity: each speaks for the time since its device's last one.

Samples come in batches, in the order in which they were stored; what the loop knows of a device
outlives the batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from analytics.ledger.kernel.compiled import driver, leaf
from analytics.ledger.kernel.lookup import (
    BACKWARD,
    CROWDED,
    DONE,
    F_BUSY,
    F_LINK,
    F_SM,
    FULL,
    M_LAST_TS,
    M_LOOSE,
    M_NEXT,
    M_NO_RUN,
    M_OUT,
    M_SINCE,
    M_SORTED,
    M_SPARE,
    NEVER,
    S_KEY,
    S_NAMED,
    S_PART,
    S_POWER,
    S_T0,
    S_T1,
    V_ACTIVE,
    V_BEFORE,
    V_HANG,
    V_LINK,
    V_NAMED,
    V_PEAK,
    V_POWER,
    V_PROCESSES,
    V_RUN,
    V_SPAN,
    V_T0,
    V_T1,
    V_TIME,
    Batch,
    device_of,
    first_span,
)
from analytics.ledger.kernel.spare import keep_spare
from analytics.ledger.kernel.state import NO_JOB, ZERO, Array

HOUR_US = 3_600_000_000


class Tables(NamedTuple):
    """What the loop works in: spans and their index, devices and theirs, room for rows, idle
    floors, how many samples bear on each hour, the bounds of slots, and room for memory that no
    run is named for."""

    spans: Array
    index: Array
    devices: Array
    table: Array
    out: Array
    floors: Array
    hours: Array
    bounds: Array
    spare: Array


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


@leaf
def _count(hours: Array, ended: int, began: int, samples: int) -> None:
    """So many samples bear on the hour that they end in and on the one that they reach back to."""
    if 0 <= ended < hours.shape[0]:
        hours[ended] += samples
    if began != ended and 0 <= began < hours.shape[0]:
        hours[began] += samples


@leaf
def _is_full(tables: Tables, at: Array) -> bool:
    """Whether one sample more could want more rows than there is room for."""
    out, spare = tables.out.shape[0] - at[M_OUT], tables.spare.shape[0] - at[M_SPARE]
    return bool(out <= tables.spans.shape[0] or spare <= tables.bounds.shape[0])


@driver
def measure(batch: Batch, tables: Tables, at: Array) -> int:
    """Read on from ``at[M_NEXT]``; why it stopped: DONE, BACKWARD (a device's time did not rise),
    CROWDED (no room for another device) or FULL (no room in ``out`` or ``spare``)."""
    devices, spans = tables.devices, tables.spans
    ticked, began, ends, begins, ticks = NEVER, NEVER, NO_JOB, NO_JOB, ZERO
    no_run, loose, full, why = at[M_NO_RUN], at[M_LOOSE], _is_full(tables, at), DONE
    for n in range(at[M_NEXT], batch.ts.shape[0]):
        # Unsigned: no place is counted from the end.
        i: Any = np.uint64(n)
        d = ZERO - 1 if full else device_of(batch, i, devices, tables.table, at)
        if d < 0:
            why, at[M_NEXT] = FULL if full else CROWDED, n
            break
        v: Any = np.uint64(d)
        ts, run, util = batch.ts[i], batch.run[i], batch.util[i]
        before = devices[v, V_BEFORE]
        reach = 2 * np.int64(batch.step_s[i] * 1e6 + 0.5)
        if ts != ticked or ts - reach != began:
            _count(tables.hours, ends, begins, ticks)
            ticked, began, ticks = ts, ts - reach, ZERO
            ends = (ts - 1 - at[M_SINCE]) // HOUR_US if ts <= at[M_LAST_TS] else NO_JOB
            begins = (began - at[M_SINCE]) // HOUR_US if ts <= at[M_LAST_TS] else NO_JOB
        ticks += 1
        if run == no_run and (util > 0 or batch.processes[i] > 0):
            loose = 1
        if ts <= before:
            if not at[M_SORTED]:
                why = BACKWARD
                break
            continue  # a double
        devices[v, V_BEFORE] = ts
        if run == no_run and 0 <= batch.used[i] <= batch.total[i] and batch.total[i] > 0:
            keep_spare(batch, i, v, int(reach), (devices, tables.bounds, tables.spare), at)
            full = _is_full(tables, at)
        traffic = _traffic(batch, i, v, devices)
        if not 0 <= util <= 1:
            continue
        a = max(before, ts - reach, batch.since[i])
        known = devices[v, V_SPAN] >= 0 and run == devices[v, V_RUN]
        if known and devices[v, V_T0] <= a and ts <= devices[v, V_T1]:
            _speak(batch, i, v, ts - a, (traffic, before), devices, tables.floors)
            continue
        s = first_span(batch, i, a, v, devices, spans, tables.index, no_run)
        if s >= 0:
            devices[v, V_RUN] = run
            _spread(batch, i, v, (s, a, traffic, before), tables, at)
            full = _is_full(tables, at)
    _count(tables.hours, ends, begins, ticks)
    at[M_LOOSE] = loose
    return why
