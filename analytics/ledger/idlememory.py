"""Memory of GPUs that nobody holds and nobody touches: the part of `vram_idle` beside held time.

Samples without a run speak here. As for held time, what counts is the most that was used within a
slice: the rest was never touched. Where more is sampled without a run than is not held (a source
that does not know whose GPUs it sees), nothing is said.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from analytics.ledger.classes import CLASSES, Overlay
from analytics.ledger.frame import Frame
from analytics.ledger.held import Piece
from analytics.ledger.idleboards import Span
from analytics.ledger.kernel.state import Array
from analytics.ledger.notheld import OVERLAY_INDEX
from analytics.ledger.parts import hashes
from analytics.ledger.remainder import Left
from analytics.window import HOUR_US, from_us
from collector.store import Work

_VRAM = OVERLAY_INDEX[Overlay.VRAM_IDLE]
_SPARE = 20
"""A twentieth more may be sampled than is unheld: samples reach over the end of a run."""

# One row = one device in one slice: how long it was sampled without a run, and its fullest memory.
_SAMPLED = """
WITH s AS (
  SELECT node, gpu_uuid, mig_uuid, coalesce(mig_uuid, gpu_uuid, CAST(gpu_index AS VARCHAR)) AS unit,
    epoch_us(ts) AS t1, greatest(coalesce(lag(epoch_us(ts)) OVER device, 0),
      epoch_us(ts) - CAST(step_s * 2e6 AS BIGINT)) AS t0,
    CAST(1e6 * mem_used_mib / mem_total_mib AS BIGINT) AS ppm
  FROM sample WHERE cluster = $1 AND ts > $2 AND ts <= $3 AND run_id IS NULL
    AND list_contains(CAST($7 AS VARCHAR[]), node)
    AND mem_total_mib > 0 AND mem_used_mib BETWEEN 0 AND mem_total_mib
  WINDOW device AS (PARTITION BY node, coalesce(mig_uuid, gpu_uuid, CAST(gpu_index AS VARCHAR))
    ORDER BY ts)),
slots AS (SELECT unnest(CAST($4 AS BIGINT[])) AS b, unnest(CAST($5 AS BIGINT[])) AS e),
parts AS (
  SELECT node, gpu_uuid, mig_uuid, unit, t0 // $6 * $6 AS b, t1 - t0 AS us, ppm FROM s
  WHERE t0 // $6 = (t1 - 1) // $6 AND t0 < t1
    AND t0 // $6 * $6 IN (SELECT b FROM slots WHERE e = b + $6)
  UNION ALL
  SELECT node, gpu_uuid, mig_uuid, unit, b, least(t1, e) - greatest(t0, b), ppm
  FROM s JOIN slots ON t0 < e AND t1 > b
  WHERE t0 // $6 <> (t1 - 1) // $6 OR NOT t0 // $6 * $6 IN (SELECT b FROM slots WHERE e = b + $6)),
device AS (
  SELECT node, gpu_uuid, mig_uuid, unit, b, CAST(sum(us) AS BIGINT) AS us, max(ppm) AS ppm
  FROM parts GROUP BY ALL)
SELECT * FROM device"""
_SLICES = """
SELECT mig_uuid, max(gpu_slices) AS slices FROM mig_instance WHERE cluster = ? GROUP BY mig_uuid"""
_KEPT = """
SELECT epoch_us(since) AS b, node, gpu_model, gpu_uuid, untouched_us FROM idle_memory_hour
WHERE cluster = ? AND hour IN (SELECT unnest(CAST(? AS TIMESTAMP[]))) ORDER BY ALL"""

Where = tuple[int, str | None, int]
"""pool, the board with rows of its own (None: the pool's row), slot."""


@dataclass(slots=True)
class _Found:
    """Per place the time sampled and the untouched part of it, in us."""

    sampled: dict[Where, int]
    untouched: dict[Where, int]

    def add(self, where: Where, sampled: int, untouched: int) -> None:
        self.sampled[where] += sampled
        self.untouched[where] += untouched


def post_idle_memory(
    frame: Frame, spare: Array, free: tuple[Array, Left],
    boards: dict[tuple[int, str], list[Span]], gone: list[int],
) -> dict[Where, int]:  # fmt: skip
    """Put untouched memory (``spare``, see `activity.Measured`) of unheld time on the rows of
    ``free``; returns what was posted. Hours in ``gone`` (us) have lost their samples and take
    what was kept of them."""
    rest, left = free
    found = _Found(defaultdict(int), defaultdict(int))
    _add_plain(frame, spare, boards, found)
    _add_apart(frame, boards, found)
    unheld = rest[:, :, :CLASSES].sum(axis=2)
    posted = {
        where: amount
        for where, amount in sorted(found.untouched.items(), key=lambda i: (i[0][0], i[0][2]))
        if amount > 0
        and _hour(frame, where) not in gone
        and _believable(where, found.sampled[where], unheld, left)
    }
    posted |= _kept(frame, gone)
    for (pool, gpu, slot), amount in posted.items():
        if gpu is not None and (pool, gpu, slot) in left:
            own = left[pool, gpu, slot]
            own[Overlay.VRAM_IDLE] = min(amount, sum(own.values()))
        else:
            room = int(rest[pool, slot, :CLASSES].sum())
            rest[pool, slot, _VRAM] += min(amount, room - int(rest[pool, slot, _VRAM]))
    return posted


def _hour(frame: Frame, where: Where) -> int:
    return int(frame.bounds[where[2]]) // HOUR_US * HOUR_US


def _believable(where: Where, sampled: int, unheld: Array, left: Left) -> bool:
    pool, gpu, slot = where
    own = left.get((pool, gpu, slot)) if gpu is not None else None
    most = int(unheld[pool, slot]) if own is None else sum(own.values())
    return sampled <= most + most // _SPARE


def _special(frame: Frame, boards: dict[tuple[int, str], list[Span]]) -> list[str]:
    """Nodes whose devices must be told apart: some are held by name, cut up, or of another
    model."""
    fleet = frame.fleet
    pools = {piece.pool for piece in frame.held.pieces if piece.gpu is not None}
    pools |= {pool for pool, _ in boards}
    names = {fleet.pools[pool][0] for pool in pools}
    return sorted(names | {node for node, _ in fleet.pools if len(fleet.pools_of(node)) > 1})


def _params(frame: Frame, boards: dict[tuple[int, str], list[Span]]) -> list[object]:
    edges = frame.bounds.tolist()
    span = [from_us(edges[0] - HOUR_US), from_us(edges[-1] + HOUR_US)]
    return [frame.facts.cluster, *span, edges[:-1], edges[1:], HOUR_US, _special(frame, boards)]


def _add_plain(
    frame: Frame, spare: Array, boards: dict[tuple[int, str], list[Span]], found: _Found
) -> None:
    """Devices of a node together, from the pass over the samples that measures held time."""
    special = set(_special(frame, boards))
    nodes = [node for node in frame.fleet.nodes if node not in special]
    codes = hashes(frame.work, nodes)
    order = np.argsort(codes)
    place = np.minimum(np.searchsorted(codes, spare[:, 0], sorter=order), len(nodes) - 1)
    which = order[place] if nodes else place
    known = codes[which] == spare[:, 0] if nodes else np.zeros(spare.shape[0], np.bool_)
    slots = frame.bounds.shape[0] - 1
    sums = np.zeros((2, len(nodes) * slots), np.int64)
    where = which[known] * slots + spare[known, 1]
    np.add.at(sums[0], where, spare[known, 2])
    np.add.at(sums[1], where, spare[known, 3])
    for at in np.flatnonzero(sums[0]).tolist():
        for pool in frame.fleet.pools_of(nodes[at // slots])[:1]:
            found.add((pool, None, at % slots), int(sums[0, at]), int(sums[1, at]))


def _add_apart(frame: Frame, boards: dict[tuple[int, str], list[Span]], found: _Found) -> None:
    """Devices one by one, each for as long as nobody holds it by name."""
    if not _special(frame, boards):
        return
    work, edges = frame.work, frame.bounds.tolist()
    slot_of = {begin: slot for slot, begin in enumerate(edges[:-1])}
    models = _models(work, frame.facts.cluster)
    slices = {r["mig_uuid"]: r["slices"] for r in work.rows(_SLICES, [frame.facts.cluster])}
    pieces: dict[str, list[Piece]] = defaultdict(list)
    for piece in frame.held.pieces:
        if piece.gpu is not None:
            pieces[piece.gpu].append(piece)
    rows = work.rows(_SAMPLED, _params(frame, boards))
    cut = {(row["gpu_uuid"], row["b"]) for row in rows if row["mig_uuid"] is not None}
    for row in sorted(rows, key=lambda row: (row["node"], row["unit"], row["b"])):
        pool = _pool(frame, row["node"], models.get(row["gpu_uuid"]))
        gpu, mig, slot = row["gpu_uuid"], row["mig_uuid"], slot_of[row["b"]]
        if pool is None or (mig is None and (gpu, row["b"]) in cut):
            continue
        mine = [p for p in pieces[gpu] if mig is None or p.mig in (None, mig)]
        span = (row["b"], edges[slot + 1])
        us = min(row["us"], span[1] - span[0] - _held(mine, span))
        if us > 0:
            share = (slices.get(mig) or 0, _whole(frame, pool)) if mig is not None else (1, 1)
            sampled = us * share[0] // share[1]
            board = gpu if (pool, gpu) in boards else None
            found.add((pool, board, slot), sampled, sampled * (1_000_000 - row["ppm"]) // 1_000_000)


def _models(work: Work, cluster: str) -> dict[str, str]:
    rows = work.rows("SELECT gpu_uuid, gpu_model FROM device WHERE cluster = ?", [cluster])
    return {row["gpu_uuid"]: row["gpu_model"] for row in rows}


def _pool(frame: Frame, node: str, model: str | None) -> int | None:
    pools = frame.fleet.pools_of(node)
    exact = [pool for pool in pools if frame.fleet.pools[pool][1] == model]
    return next(iter(exact or pools), None)


def _whole(frame: Frame, pool: int) -> int:
    """Compute slices of a board."""
    return 4 if "a30" in frame.fleet.pools[pool][1].lower() else 7


def _held(pieces: list[Piece], span: Span) -> int:
    """How long any of the pieces holds within the span."""
    total, at = 0, span[0]
    for piece in sorted(pieces, key=lambda p: p.t0):
        t0, t1 = max(piece.t0, at), min(piece.t1, span[1])
        if t0 < t1:
            total, at = total + t1 - t0, t1
    return total


def _kept(frame: Frame, gone: list[int]) -> dict[Where, int]:
    if not gone:
        return {}
    slot_of = {begin: slot for slot, begin in enumerate(frame.bounds.tolist()[:-1])}
    place = {key: pool for pool, key in enumerate(frame.fleet.pools)}
    naive = [from_us(hour).replace(tzinfo=None) for hour in sorted(gone)]
    kept: dict[Where, int] = {}
    for row in frame.work.rows(_KEPT, [frame.facts.cluster, naive]):
        pool, slot = place.get((row["node"], row["gpu_model"])), slot_of.get(row["b"])
        if pool is not None and slot is not None:
            kept[pool, row["gpu_uuid"], slot] = row["untouched_us"]
    return kept
