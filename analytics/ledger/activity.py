"""Measured activity of held time: samples, each speaking for the time since its device's last
one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from analytics.ledger.broken import Breakage
from analytics.ledger.kernel import lookup as d
from analytics.ledger.kernel import measure as m
from analytics.ledger.kernel.state import Array
from analytics.ledger.settings import LedgerSettings
from analytics.window import from_us
from collector.store import Work

PPM = 1_000_000
_WIDEST_STEP = """
SELECT coalesce(max(step_s), 0) FROM sample WHERE cluster = ? AND ts > ? AND ts <= ?"""

# One row = one sample; -1 = not measured. Hashes stand for names, 0 = none. Link counters are added
# up; a device that has only some of them counts with those.
_SAMPLES = """
SELECT epoch_us(ts) AS ts, step_s, coalesce(util_ratio, -1) AS util, hash(node) AS node,
  CASE WHEN mig_uuid IS NULL AND gpu_uuid IS NULL THEN 0 ELSE hash(coalesce(mig_uuid, gpu_uuid))
  END AS unit,
  CASE WHEN run_id IS NULL THEN 0 ELSE hash(run_id) END AS run, coalesce(gpu_index, -1) AS idx,
  coalesce(sm_active_ratio, -1) AS sm, coalesce(power_mw, -1) AS power,
  coalesce(mem_used_mib, -1) AS used, coalesce(mem_total_mib, -1) AS total,
  CASE WHEN nvlink_tx_bytes IS NULL AND pcie_tx_bytes IS NULL THEN -1.0
    ELSE coalesce(nvlink_tx_bytes, 0) + coalesce(nvlink_rx_bytes, 0)
      + coalesce(pcie_tx_bytes, 0) + coalesce(pcie_rx_bytes, 0) END AS link,
  coalesce(processes, -1) AS processes
FROM sample WHERE cluster = ? AND ts > ? AND ts <= ?"""
_SORTED = " ORDER BY hash(node), unit, idx, ts, util"


@dataclass(frozen=True, slots=True)
class Spans:
    """Held time that samples can speak for, as the table of `kernel.measure`.

    Spans of one key do not overlap; they are in order of (key, t0). Several keys may speak for a
    part.
    """

    table: Array


@dataclass(slots=True)
class Measured:
    """Per part: measured us, active ppm x us, measured us beyond what the part can hold, us in
    which it is suspected to hang, untouched memory in ppm x us, and us of the suspected in which a
    GPU has no process while others of its gang have."""

    time: Array
    active: Array
    over: Array
    hang: Array
    untouched: Array
    no_process: Array


@dataclass(frozen=True, slots=True)
class Source:
    """Which samples: of a cluster, over ``[since, until)``; those of a broken GPU say nothing."""

    work: Work
    cluster: str
    since: int
    until: int
    settings: LedgerSettings
    broken: list[tuple[int, Breakage]]
    """Hash of the GPU's name, and when it was broken."""


def measured(source: Source, spans: Spans, most: Array, gang: Array) -> Measured:
    """What the samples say of each part; ``most`` = what a part can hold, ``gang`` = a number that
    parts of one run in one slice share."""
    sums = np.zeros((6, most.shape[0]), np.int64)
    if spans.table.shape[0]:
        rows = _read(source, spans.table, ordered=False)
        if rows is None:
            rows = _read(source, spans.table, ordered=True)
        if rows is not None and rows.shape[0]:
            _suspect_absent(rows, gang)
            m.add_up(rows[np.lexsort((rows[:, 1], rows[:, 0]))], most, sums)
    return Measured(*sums)


def _suspect_absent(rows: Array, gang: Array) -> None:
    """A device without a process, while others of its run have some, is suspected all its time; the
    last column becomes that time."""
    most = np.full(int(gang.max()) + 1, -1, np.int64)
    of = gang[rows[:, 0]]
    np.maximum.at(most, of, rows[:, 6])
    absent = (rows[:, 6] == 0) & (most[of] > 0)
    rows[:, 4] = np.where(absent, rows[:, 2], rows[:, 4])
    rows[:, 6] = np.where(absent, rows[:, 2], 0)


def _batches(source: Source, ordered: bool) -> Iterator[d.Batch]:
    day = 86_400_000_000
    near = [source.cluster, from_us(source.since - day), from_us(source.until + day)]
    reach = int(float(source.work.value(_WIDEST_STEP, near)) * 2e6)
    span = [from_us(source.since - 2 * reach - 1), from_us(source.until + reach)]
    params = [source.cluster, *span]
    for rows in source.work.batches(_SAMPLES + (_SORTED if ordered else ""), params):
        batch = d.Batch(*(_column(rows.column(name)) for name in d.Batch._fields))
        yield _silenced(batch, source.broken)


def _column(column: pa.Array) -> Array:
    values = column.to_numpy()
    return values.view(np.int64) if values.dtype == np.uint64 else values


def _silenced(batch: d.Batch, broken: list[tuple[int, Breakage]]) -> d.Batch:
    """Without what a GPU says of itself while it is broken."""
    util = batch.util
    for unit, b in broken:
        mine = (batch.unit == unit) & (batch.ts > b.t0) & (batch.ts <= b.t1)
        if mine.any():
            util = np.where(mine, -1.0, util)
            util.setflags(write=False)
    return batch._replace(util=util)


def _read(source: Source, spans: Array, *, ordered: bool) -> Array | None:
    """Rows of `kernel.measure`; None = a device's samples are not in order of time."""
    index = np.zeros(1 << (2 * spans.shape[0]).bit_length(), np.int64)
    d.index_spans(spans, index)
    settings = source.settings
    floors = (settings.hang_occupied_ratio, settings.hang_sm_ratio, settings.hang_link_bytes_per_s)
    tables = m.Tables(
        spans, index, *_room(np.zeros((0, d.DEVICE_COLUMNS), np.int64), 1 << 12),
        np.empty((2 * spans.shape[0] + 4096, d.OUT_COLUMNS), np.int64),
        np.array(floors, np.float64),
    )  # fmt: skip
    at = np.array([0, 0, 0, 0, int(ordered)], np.int64)
    found, backward = [], False
    for batch in _batches(source, ordered):
        at[d.M_NEXT] = 0
        while not backward:
            stopped = m.measure(batch, tables, at)
            if stopped == d.DONE:
                break
            if stopped == d.CROWDED:
                devices, table = _room(tables.devices, 4 * tables.devices.shape[0])
                tables = tables._replace(devices=devices, table=table)
            elif stopped == d.FULL:
                found.append(tables.out[: at[d.M_OUT]].copy())
                at[d.M_OUT] = 0
            else:
                backward = True  # the rest is read to its end, for nothing
    if backward:
        return None
    last = _last(tables.devices[: at[d.M_DEVICES]], spans)
    return np.concatenate([*found, tables.out[: at[d.M_OUT]], last])


def _room(devices: Array, size: int) -> tuple[Array, Array]:
    """The same devices in a larger table, and its index."""
    known = devices.shape[0]
    larger = np.zeros((size, d.DEVICE_COLUMNS), np.int64)
    larger[:known] = devices
    table = np.zeros(4 * size, np.int64)
    d.enter(larger, known, table)
    return larger, table


def _last(devices: Array, spans: Array) -> Array:
    """What devices measured of the span that they are still in."""
    place = np.flatnonzero(devices[:, d.V_SPAN] >= 0)
    mine = devices[place]
    amounts = mine[:, [d.V_TIME, d.V_ACTIVE, d.V_HANG, d.V_PEAK, d.V_PROCESSES]]
    return np.column_stack([spans[mine[:, d.V_SPAN], d.S_PART], place, amounts])
