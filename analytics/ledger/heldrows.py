"""Parts of held time added up to rows of (pool, GPU, run, slice) in whole micro-GPU-seconds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from analytics.ledger.activity import PPM
from analytics.ledger.held import Held
from analytics.ledger.kernel.state import Array
from analytics.ledger.lost import LOST, POSSIBLY
from analytics.ledger.parts import Parts, Row, chain, steps

CLASSES = 5  # used, lost, allocated_idle, allocated_unmeasured, failed_held


@dataclass(slots=True)
class HeldRows:
    """Rows as columns; gpu and run are places in ``gpus`` and ``runs``, gpu -1 = not named."""

    gpus: list[str]
    runs: list[str]
    pool: Array
    gpu: Array
    run: Array
    slot: Array
    classes: Array
    possibly_lost: Array
    contested: Array
    shared: dict[tuple[int, str, int], int]
    """GPU time in micro-GPU-seconds that runs hold of each GPU (pool, gpu, slot) held in parts."""


def held_rows(held: Held, parts: Parts) -> HeldRows:
    """Add up parts; a GPU that several runs share is rounded along one running sum."""
    pieces = held.pieces
    runs = sorted({piece.run_id for piece in pieces})
    gpus = sorted({piece.gpu for piece in pieces if piece.gpu is not None})
    run_rank = {name: place for place, name in enumerate(runs)}
    gpu_rank: dict[str | None, int] = {name: place for place, name in enumerate(gpus)}
    gpu_rank[None] = -1
    columns = np.array(
        [
            (p.pool, gpu_rank[p.gpu], run_rank[p.run_id], p.units, p.failed, p.thrown, p.contested)
            for p in pieces
        ],
        np.int64,
    ).reshape(-1, 7)
    broken_up = {(p.pool, gpu_rank[p.gpu]) for p in pieces if p.gpu and p.units < held.per_gpu}
    divided = np.array([tuple(row) in broken_up for row in columns[:, :2].tolist()], np.bool_)
    whole = ~divided[parts.piece] if pieces else np.zeros(0, np.bool_)
    rows = HeldRows(gpus, runs, *_whole(columns, parts, whole, held.per_gpu), {})
    if broken_up:
        _add_divided(rows, columns, parts, ~whole, held.per_gpu)
    return rows


def _whole(
    columns: Array, parts: Parts, chosen: Array, per_gpu: int
) -> tuple[Array, Array, Array, Array, Array, Array, Array]:
    """Rows of whole GPUs: only activity needs rounding."""
    piece = columns[parts.piece[chosen]]
    slot, dt = parts.slot[chosen], parts.t1[chosen] - parts.t0[chosen]
    order = np.lexsort((slot, piece[:, 2], piece[:, 1], piece[:, 0]))
    keys = np.column_stack([piece[:, 0], piece[:, 1], piece[:, 2], slot])[order]
    first = np.ones(keys.shape[0], np.bool_)
    first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    starts = np.flatnonzero(first)

    def total(values: Array) -> Array:
        return np.add.reduceat(values[order], starts) if starts.size else values[:0]

    gone = piece[:, 5] == LOST
    units = dt * (piece[:, 3] // per_gpu)
    activity, time = parts.active[chosen], parts.time[chosen]
    active, lost = total(np.where(gone, 0, activity)), total(np.where(gone, activity, 0))
    measured, live = total(time), total(np.where(piece[:, 4] == 1, 0, units))
    everything = total(units)
    used = _half_up(active)
    busy = _half_up(active + lost)
    classes = np.column_stack(
        [used, busy - used, measured - busy, live - measured, everything - live]
    )
    possibly = _half_up(total(np.where(piece[:, 5] == POSSIBLY, activity, 0)))
    contested = total(dt * (piece[:, 6] // per_gpu))
    contested = np.minimum(contested, everything - classes[:, 3])
    place = keys[starts]
    return (*(place[:, k] for k in range(4)), classes, possibly, contested)


def _half_up(active: Array) -> Array:
    return (2 * active + PPM) // (2 * PPM)


def _add_divided(rows: HeldRows, columns: Array, parts: Parts, chosen: Array, per_gpu: int) -> None:
    """Rows of GPUs held in parts: one running sum over each GPU and slice keeps them within it."""
    exact = _exact(columns, parts, chosen)
    places, classes, extra = [], [], []
    for (pool, gpu, slot), by_run in sorted(exact.items()):
        flat = [step for run in sorted(by_run) for step in steps(by_run[run])]
        posts = chain(flat, per_gpu * PPM)
        rows.shared[pool, rows.gpus[gpu], slot] = sum(posts)
        for nth, run in enumerate(sorted(by_run)):
            mine = posts[CLASSES * nth : CLASSES * nth + CLASSES]
            row = by_run[run]
            places.append((pool, gpu, run, slot))
            classes.append(mine)
            possibly = min(chain([row.possibly], per_gpu * PPM)[0], mine[0])
            contested = min(row.contested // per_gpu, sum(mine) - mine[3])
            extra.append((possibly, contested))
    place = np.array(places, np.int64)
    for column, name in enumerate(("pool", "gpu", "run", "slot")):
        setattr(rows, name, np.concatenate([getattr(rows, name), place[:, column]]))
    rows.classes = np.concatenate([rows.classes, np.array(classes, np.int64)])
    overlays = np.array(extra, np.int64)
    rows.possibly_lost = np.concatenate([rows.possibly_lost, overlays[:, 0]])
    rows.contested = np.concatenate([rows.contested, overlays[:, 1]])


Exact = dict[tuple[int, int, int], dict[int, Row]]
"""Per (pool, gpu, slot) and run."""


def _exact(columns: Array, parts: Parts, chosen: Array) -> Exact:
    exact: Exact = defaultdict(lambda: defaultdict(Row))
    for part in np.flatnonzero(chosen).tolist():
        pool, gpu, run, units, failed, thrown, contested = columns[parts.piece[part]].tolist()
        row = exact[pool, gpu, int(parts.slot[part])][run]
        dt = int(parts.t1[part] - parts.t0[part])
        active = units * int(parts.active[part])
        row.total += units * dt
        row.live += 0 if failed else units * dt
        row.measured += units * int(parts.time[part])
        row.contested += contested * dt
        row.possibly += active if thrown == POSSIBLY else 0
        if thrown == LOST:
            row.lost += active
        else:
            row.active += active
    return exact
