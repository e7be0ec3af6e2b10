"""Ranks of a gang that started apart: the first ones wait for the last one, or spin.

A rank is a GPU (or MIG instance) with processes of the run. An hour is judged by what was seen in
it alone, so that hours built one by one and a day built at once agree. A GPU that evidently works
(an intensity above its idle floor) waits for nobody: independent steps of one job are no gang.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analytics.ledger.boardpower import idle_floors
from analytics.ledger.frame import Frame
from analytics.ledger.kernel.state import Array
from analytics.ledger.parts import Parts
from analytics.ledger.settings import LedgerSettings
from analytics.window import HOUR_US, from_us
from collector.store import Work

_REACH_US = 60_000_000
"""A process that started late in an hour shows at the first tick of the next one."""

_LATE = """
SELECT DISTINCT run_id FROM process_sample
WHERE cluster = $1 AND ts > $2 AND ts <= $3 AND run_id IS NOT NULL AND started_at > $2
ORDER BY run_id"""

# One row = when the first process of one rank started, as it was seen in one hour.
_STARTS = """
WITH hours AS (SELECT unnest(generate_series($2::TIMESTAMP, $3::TIMESTAMP - INTERVAL 1 HOUR,
  INTERVAL 1 HOUR)) AS h)
SELECT epoch_us(h) AS hour, run_id, node, coalesce(mig_uuid, gpu_uuid) AS unit,
  epoch_us(min(started_at)) AS t
FROM hours JOIN process_sample p ON cluster = $1 AND p.ts > h
  AND p.ts <= h + INTERVAL 1 HOUR + to_microseconds($4)
WHERE run_id IN (SELECT unnest(CAST($5 AS VARCHAR[]))) AND started_at IS NOT NULL
  AND started_at < h + INTERVAL 1 HOUR
GROUP BY ALL ORDER BY hour, run_id, t, node, unit"""

# One row = one sample of such a rank, the time that it speaks for, and its intensities.
_SAMPLES = """
SELECT coalesce(mig_uuid, gpu_uuid) AS unit, node, epoch_us(ts) AS t1,
  greatest(coalesce(lag(epoch_us(ts)) OVER device, 0), epoch_us(ts) - CAST(step_s * 2e6 AS BIGINT))
    AS t0,
  util_ratio, sm_active_ratio, power_mw,
  coalesce(nvlink_tx_bytes, pcie_tx_bytes) IS NOT NULL AND lag(coalesce(nvlink_tx_bytes,
    pcie_tx_bytes)) OVER device IS NOT NULL AS link
FROM (SELECT DISTINCT ON (node, mig_uuid, gpu_uuid, ts) * FROM sample
  WHERE cluster = $1 AND ts > $2 AND ts <= $3
    AND coalesce(mig_uuid, gpu_uuid) IN (SELECT unnest(CAST($4 AS VARCHAR[])))
  ORDER BY util_ratio)
WINDOW device AS (PARTITION BY node, mig_uuid, gpu_uuid ORDER BY ts) ORDER BY ALL"""


@dataclass(frozen=True, slots=True)
class Apart:
    """One gang in one hour: when its first and its last rank started; ``waits`` = per GPU the time
    in which it can be waiting for others, or for its own process."""

    run_id: str
    hour: int
    waits: dict[tuple[str, str], tuple[int, int]]
    text: str


def mark_started_apart(
    frame: Frame, parts: Parts, settings: LedgerSettings
) -> dict[tuple[int, str], str]:
    """Add to the parts what waits for ranks that started late; per (hour, run) the evidence."""
    if not settings.hang_start_gap_s or not parts.piece.shape[0]:
        return {}
    gangs = _gangs(frame, settings.hang_start_gap_s * 1_000_000)
    if not gangs:
        return {}
    waiting = _Waiting(frame, parts, settings)
    units = sorted({unit for gang in gangs for _, unit in gang.waits})
    until = max(t1 for gang in gangs for _, t1 in gang.waits.values())
    span = [from_us(int(frame.bounds[0]) - HOUR_US), from_us(until + HOUR_US)]
    samples = defaultdict(list)
    for row in frame.work.rows(_SAMPLES, [frame.facts.cluster, *span, units]):
        samples[row["node"], row["unit"]].append(row)
    texts = {}
    for gang in gangs:
        for place, (t0, t1) in gang.waits.items():
            for row in samples[place]:
                a, b = max(t0, row["t0"]), min(t1, row["t1"])
                if a < b and waiting.idles(place[0], row):
                    waiting.add(gang.run_id, place, a, b)
        texts[gang.hour, gang.run_id] = gang.text
    return texts


def _gangs(frame: Frame, gap: int) -> list[Apart]:
    work, cluster = frame.work, frame.facts.cluster
    since, until = int(frame.bounds[0]), int(frame.bounds[-1])
    span = [since // HOUR_US * HOUR_US, -(-until // HOUR_US) * HOUR_US]
    late = _late(work, [cluster, from_us(span[0]), from_us(span[1] + _REACH_US)])
    if not late:
        return []
    by_gang: dict[tuple[int, str], list[tuple[int, str, str]]] = defaultdict(list)
    params = [cluster, from_us(span[0]), from_us(span[1]), _REACH_US, late]
    for row in work.rows(_STARTS, params):
        by_gang[row["hour"], row["run_id"]].append((row["t"], row["node"], row["unit"]))
    return [
        _apart(run_id, hour, ranks)
        for (hour, run_id), ranks in by_gang.items()
        if ranks[-1][0] - ranks[0][0] > gap and ranks[-1][0] > hour
    ]


def _late(work: Work, params: list[object]) -> list[str]:
    return [row["run_id"] for row in work.rows(_LATE, params)]


def _apart(run_id: str, hour: int, ranks: list[tuple[int, str, str]]) -> Apart:
    """``ranks`` in order of their start."""
    (first, node, unit), (last, *_) = ranks[0], ranks[-1]
    waits = {}
    for t, where, gpu in ranks:
        # Before its own process a late rank holds a GPU for nothing; after it, it waits, too.
        unseen = hour + HOUR_US - t <= _REACH_US  # all of its hour counts as without a process
        waits[where, gpu] = (max(hour, t if unseen else first), min(last, hour + HOUR_US))
    behind = [f"{gpu} on {where} {_minutes(t - first)}" for t, where, gpu in ranks[::-1]
              if t - first > (last - first) // 2]  # fmt: skip
    more = "" if len(behind) <= 3 else f" and {len(behind) - 3} more"
    text = (
        f"ranks started apart: {unit} on {node} first ({from_us(first):%Y-%m-%d %H:%M}), then "
        f"{', '.join(behind[:3])}{more} later: look at what the last ones waited for (image, "
        "modules, data, a sick node) and at the rendezvous of the first ones"
    )
    return Apart(run_id, hour, waits, text)


def _minutes(us: int) -> str:
    return f"{us / 60e6:.0f} min"


class _Waiting:
    """Where the waiting time of a rank goes."""

    def __init__(self, frame: Frame, parts: Parts, settings: LedgerSettings) -> None:
        self._parts, self._settings = parts, settings
        self._node = [node for node, _ in frame.fleet.pools]
        floors = idle_floors(frame, settings.hang_power_ratio).tolist()
        self._floor: dict[str, int] = dict(zip(self._node, floors, strict=True))
        self._runs = {name: place for place, name in enumerate(parts.columns.runs)}
        self._gpus = parts.columns.units_named
        self._places: dict[str, Array] = {}

    def idles(self, node: str, row: dict[str, float | None]) -> bool:
        """Whether nothing says that the GPU works, and the idle floor has not been found yet."""
        util, sm, power = row["util_ratio"], row["sm_active_ratio"], row["power_mw"]
        floor = self._floor.get(node, 0)
        if util is None or (sm is not None and sm > self._settings.hang_sm_ratio):
            return False
        if power is not None and floor and power > floor:
            return False
        known = (sm is not None) + bool(power is not None and floor) + bool(row["link"])
        # Busy with two intensities known: that is judged where samples are read.
        return util < self._settings.hang_occupied_ratio or known < 2

    def add(self, run_id: str, place: tuple[str, str], t0: int, t1: int) -> None:
        """Put ``[t0, t1)`` into the parts of the run there, as far as they have room."""
        parts = self._parts
        for part in self._of(run_id, place):
            common = min(t1, int(parts.t1[part])) - max(t0, int(parts.t0[part]))
            room = int(parts.time[part] - parts.hang[part])
            if common > 0 and room > 0:
                parts.hang[part] += min(common, room)
                parts.apart[part] += min(common, room)

    def _of(self, run_id: str, place: tuple[str, str]) -> Iterator[int]:
        parts, columns = self._parts, self._parts.columns
        if run_id not in self._runs:
            return
        if run_id not in self._places:
            mine = columns.run[parts.piece] == self._runs[run_id]
            self._places[run_id] = np.flatnonzero(mine)
        node, unit = place
        for part in self._places[run_id].tolist():
            piece = int(parts.piece[part])
            named = int(columns.unit[piece])
            at = self._node[int(columns.pool[piece])] == node
            if at and columns.alone[piece] and (named < 0 or self._gpus[named] == unit):
                yield part
