"""Measured activity of held time: samples, each speaking for the time since its device's last
one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analytics.ledger.broken import Breakage
from analytics.ledger.kernel import lookup as d
from analytics.ledger.kernel import measure as m
from analytics.ledger.kernel.addup import add_up
from analytics.ledger.kernel.state import Array
from analytics.ledger.order import in_order
from analytics.ledger.samplecolumns import BATCH, NO_RUN, reading
from analytics.ledger.settings import LedgerSettings
from analytics.window import HOUR_US, from_us
from collector.store import Work

PPM = 1_000_000
_WIDEST_STEP = """
SELECT coalesce(max(step_s), 0) FROM sample WHERE cluster = ? AND ts > ? AND ts <= ?"""

_SORTED = " ORDER BY hash(node), unit, coalesce(gpu_index, -1), ts, util"
# Samples bear on hours up to their own and one more, as far as a window's hours are concerned.
_LAST_US = HOUR_US


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
    GPU has no process while others of its gang have. ``spare``: rows (hash of the node, slot, us,
    untouched us) of each device's memory while its samples name no run."""

    time: Array
    active: Array
    over: Array
    hang: Array
    untouched: Array
    no_process: Array
    seen: Seen
    spare: Array


@dataclass(slots=True)
class Seen:
    """What the samples that were read are: how many bear on each hour of the window (None = they
    were not read), and whether some show a GPU in use that no run is named for."""

    by_hour: Array | None = None
    loose: bool = True
    since: int = 2**62

    def may_be_rogue(self, start: int) -> bool:
        """Whether a GPU can have been used by nobody's run from ``start`` on."""
        return self.loose or self.since > start


@dataclass(frozen=True, slots=True)
class Source:
    """Which samples: of a cluster, over the slots between ``bounds``; those of a broken GPU say
    nothing."""

    work: Work
    cluster: str
    bounds: Array
    settings: LedgerSettings
    broken: list[tuple[int, Breakage]]
    """Hash of the GPU's name, and when it was broken."""

    @property
    def since(self) -> int:
        """Begin of the first slot."""
        return int(self.bounds[0])

    @property
    def until(self) -> int:
        """End of the last slot."""
        return int(self.bounds[-1])


def measured(source: Source, spans: Spans, most: Array, gang: Array) -> Measured:
    """What the samples say of each part; ``most`` = what a part can hold, ``gang`` = a number that
    parts of one run in one slice share."""
    sums, seen = np.zeros((6, most.shape[0]), np.int64), Seen()
    read = _read(source, spans.table, seen, ordered=False)
    if read is None:
        read = _read(source, spans.table, seen, ordered=True)
    rows, spare = read or (np.zeros((0, d.OUT_COLUMNS), np.int64), np.zeros((0, 4), np.int64))
    if rows.shape[0]:
        _suspect_absent(rows, gang)
        add_up(rows[in_order(rows[:, 0], rows[:, 1])], most, sums)
    time, active, over, hang, untouched, absent = sums
    return Measured(time, active, over, hang, untouched, absent, seen, spare)


def _suspect_absent(rows: Array, gang: Array) -> None:
    """A device without a process, while others of its run have some, is suspected all its time; the
    last column becomes that time."""
    most = np.full(int(gang.max()) + 1, -1, np.int64)
    of = gang[rows[:, 0]]
    np.maximum.at(most, of, rows[:, 6])
    absent = (rows[:, 6] == 0) & (most[of] > 0)
    rows[:, 4] = np.where(absent, rows[:, 2], rows[:, 4])
    rows[:, 6] = np.where(absent, rows[:, 2], 0)


def _span(source: Source) -> tuple[int, int]:
    """After which instant, and until when, samples bear on the window."""
    day = 86_400_000_000
    near = [source.cluster, from_us(source.since - day), from_us(source.until + day)]
    reach = int(float(source.work.value(_WIDEST_STEP, near)) * 2e6)
    return source.since - 2 * reach - 1, source.until + reach


def _batches(source: Source, span: tuple[int, int], ordered: bool) -> Iterator[d.Batch]:
    params = [source.cluster, from_us(span[0]), from_us(span[1])]
    how = reading(source.work)
    for rows in source.work.batches(how.sql + (_SORTED if ordered else ""), params, BATCH):
        batch = how.batch(rows)
        yield _silenced(batch, source.broken) if source.broken else batch


def _silenced(batch: d.Batch, broken: list[tuple[int, Breakage]]) -> d.Batch:
    """Without what a GPU says of itself while it is broken, or says afterwards of that time."""
    util, since = batch.util, batch.since[: batch.ts.shape[0]]
    for unit, b in broken:
        mine = (batch.unit == unit) & (batch.ts > b.t0)
        if mine.any():
            util = np.where(mine & (batch.ts <= b.t1), -1.0, util)
            since = np.asarray(np.where(mine & (batch.ts > b.t1), np.maximum(since, b.t1), since))
            util.setflags(write=False)
            since.setflags(write=False)
    return batch._replace(util=util, since=since)


def _read(source: Source, spans: Array, seen: Seen, *, ordered: bool) -> tuple[Array, Array] | None:
    """Rows of `kernel.measure`, and of memory that no run is named for; None = a device's samples
    are not in order of time. ``seen`` is filled in."""
    tables = _tables(source, spans)
    at = np.zeros(d.AT, np.int64)
    at[d.M_SORTED], at[d.M_NO_RUN] = int(ordered), _no_run(source.work)
    at[d.M_SINCE], at[d.M_LAST_TS] = source.since, source.until + _LAST_US
    found: list[Array] = []
    spare: list[Array] = []
    backward, span = False, _span(source)
    for batch in _batches(source, span, ordered):
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
                spare.append(tables.spare[: at[d.M_SPARE]].copy())
                at[d.M_OUT] = at[d.M_SPARE] = 0
            else:
                backward = True  # the rest is read to its end, for nothing
    if backward:
        return None
    seen.since = span[0]
    seen.by_hour, seen.loose = tables.hours, bool(at[d.M_LOOSE] or source.broken)
    devices = tables.devices[: at[d.M_DEVICES]]
    rows = np.concatenate([*found, tables.out[: at[d.M_OUT]], _last(devices, spans)])
    return rows, _untouched(np.concatenate([*spare, tables.spare[: at[d.M_SPARE]]]), devices)


def _tables(source: Source, spans: Array) -> m.Tables:
    """Spans with their index, and room for what the loop finds."""
    index = np.zeros(1 << (2 * spans.shape[0]).bit_length(), np.int64)
    d.index_spans(spans, index)
    settings, bounds = source.settings, source.bounds
    floors = (settings.hang_occupied_ratio, settings.hang_sm_ratio, settings.hang_link_bytes_per_s)
    return m.Tables(
        spans, index, *_room(np.zeros((0, d.DEVICE_COLUMNS), np.int64), 1 << 12),
        np.empty((2 * spans.shape[0] + 4096, d.OUT_COLUMNS), np.int64),
        np.array(floors, np.float64),
        np.zeros((source.until - source.since) // HOUR_US, np.int64),
        bounds, np.empty((2 * bounds.shape[0] + (1 << 14), d.SPARE_COLUMNS), np.int64),
    )  # fmt: skip


def _no_run(work: Work) -> int:
    """The store's hash of no name, as the signed integer that the columns hold."""
    code = int(work.value(NO_RUN))
    return code - (1 << 64) if code >= 1 << 63 else code


def _room(devices: Array, size: int) -> tuple[Array, Array]:
    """The same devices in a larger table, and its index."""
    known = devices.shape[0]
    larger = np.zeros((size, d.DEVICE_COLUMNS), np.int64)
    larger[:known] = devices
    table = np.zeros(4 * size, np.int64)
    d.enter(larger, known, table)
    return larger, table


def _untouched(spare: Array, devices: Array) -> Array:
    """Rows (hash of the node, slot, us, untouched us), with the slots that devices are still in."""
    place = np.flatnonzero(devices[:, d.V_SLOT] >= 0)
    still = devices[place][:, [d.V_SLOT, d.V_SPARE, d.V_FULLEST]]
    device, slot, us, ppm = np.concatenate([spare, np.column_stack([place, still])]).T
    return np.column_stack([devices[device, d.V_NODE], slot, us, us * (PPM - ppm) // PPM])


def _last(devices: Array, spans: Array) -> Array:
    """What devices measured of the span that they are still in."""
    place = np.flatnonzero(devices[:, d.V_SPAN] >= 0)
    mine = devices[place]
    amounts = mine[:, [d.V_TIME, d.V_ACTIVE, d.V_HANG, d.V_PEAK, d.V_PROCESSES]]
    return np.column_stack([spans[mine[:, d.V_SPAN], d.S_PART], place, amounts])
