"""Samples to activity: each speaks for the time since its device's last one.

Samples come in batches, in the order in which they were stored; what the loop knows of a device
outlives the batch.
"""

from __future__ import annotations

from typing import NamedTuple

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
    V_FULLEST,
    V_HANG,
    V_LINK,
    V_LONE,
    V_NAMED,
    V_PEAK,
    V_POWER,
    V_PROCESSES,
    V_RUN,
    V_SLOT,
    V_SPAN,
    V_SPARE,
    V_T0,
    V_T1,
    V_TIME,
    Batch,
    device_of,
    first_span,
)
from analytics.ledger.kernel.state import NO_JOB, Array

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
def _hand_spare(devices: Array, d: int, spare: Array, at: Array) -> None:
    n = at[M_SPARE]
    spare[n, 0], spare[n, 1] = d, devices[d, V_SLOT]
    spare[n, 2], spare[n, 3] = devices[d, V_SPARE], devices[d, V_FULLEST]
    at[M_SPARE] = n + 1


@leaf
def _spare(batch: Batch, i: int, d: int, reach: int, tables: Tables, at: Array) -> None:
    """Memory of a device whose sample names no run, over the time since its last such sample."""
    devices, bounds, ts = tables.devices, tables.bounds, batch.ts[i]
    a = max(devices[d, V_LONE], ts - reach)
    devices[d, V_LONE] = ts
    ppm = np.int64(np.rint(1e6 * batch.used[i] / batch.total[i]))
    slot = devices[d, V_SLOT]
    if slot >= 0 and bounds[slot] <= a and ts <= bounds[slot + 1]:
        devices[d, V_SPARE] += ts - a
        devices[d, V_FULLEST] = max(devices[d, V_FULLEST], ppm)
        return
    a, end = max(a, bounds[0]), min(ts, bounds[-1])
    if a >= end:
        return
    slot = max(slot, np.int64(0))
    if bounds[slot] > a:
        slot = np.int64(0)
    while bounds[slot + 1] <= a:
        slot += 1
    while a < end:
        if slot != devices[d, V_SLOT]:
            if devices[d, V_SLOT] >= 0:
                _hand_spare(devices, d, tables.spare, at)
            devices[d, V_SLOT], devices[d, V_SPARE], devices[d, V_FULLEST] = slot, 0, 0
        until = min(end, bounds[slot + 1])
        devices[d, V_SPARE] += until - a
        devices[d, V_FULLEST] = max(devices[d, V_FULLEST], ppm)
        a, slot = until, slot + 1


@driver
def measure(batch: Batch, tables: Tables, at: Array) -> int:
    """Read on from ``at[M_NEXT]``; why it stopped: DONE, BACKWARD (a device's time did not rise),
    CROWDED (no room for another device) or FULL (no room in ``out`` or ``spare``)."""
    devices, spans, hours = tables.devices, tables.spans, tables.hours
    no_run, ticked, began, ends, begins = at[M_NO_RUN], NEVER, NEVER, NO_JOB, NO_JOB
    while at[M_NEXT] < batch.ts.shape[0]:
        i = at[M_NEXT]
        if tables.out.shape[0] - at[M_OUT] <= spans.shape[0]:
            return FULL
        if tables.spare.shape[0] - at[M_SPARE] <= tables.bounds.shape[0]:
            return FULL
        d = device_of(batch, i, devices, tables.table, at)
        if d < 0:
            return CROWDED
        ts, before = batch.ts[i], devices[d, V_BEFORE]
        at[M_NEXT] = i + 1
        reach = 2 * np.int64(batch.step_s[i] * 1e6 + 0.5)
        if ts != ticked or ts - reach != began:
            ticked, began = ts, ts - reach
            ends = (ts - 1 - at[M_SINCE]) // HOUR_US if ts <= at[M_LAST_TS] else NO_JOB
            begins = (began - at[M_SINCE]) // HOUR_US if ts <= at[M_LAST_TS] else NO_JOB
        if 0 <= ends < hours.shape[0]:
            hours[ends] += 1
        if begins != ends and 0 <= begins < hours.shape[0]:
            hours[begins] += 1
        alone = batch.run[i] == no_run
        if alone and (batch.util[i] > 0 or batch.processes[i] > 0):
            at[M_LOOSE] = 1
        if ts <= before:
            if not at[M_SORTED]:
                return BACKWARD
            continue  # a double
        devices[d, V_BEFORE] = ts
        if alone and 0 <= batch.used[i] <= batch.total[i] and batch.total[i] > 0:
            _spare(batch, i, d, int(reach), tables, at)
        traffic = _traffic(batch, i, d, devices)
        if not 0 <= batch.util[i] <= 1:
            continue
        a = max(before, ts - reach, batch.since[i])
        known = devices[d, V_SPAN] >= 0 and batch.run[i] == devices[d, V_RUN]
        if known and devices[d, V_T0] <= a and ts <= devices[d, V_T1]:
            _speak(batch, i, d, ts - a, (traffic, before), devices, tables.floors)
            continue
        s = first_span(batch, i, a, d, devices, spans, tables.index, no_run)
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
