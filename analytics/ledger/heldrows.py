"""Parts of held time added up to rows of (pool, GPU, run, slice) in whole micro-GPU-seconds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from analytics.ledger.activity import PPM
from analytics.ledger.classes import Overlay
from analytics.ledger.held import Held
from analytics.ledger.kernel.state import Array
from analytics.ledger.lost import LOST, POSSIBLY
from analytics.ledger.order import in_order
from analytics.ledger.parts import Parts, Row, chain, steps

CLASSES = 5  # used, lost, allocated_idle, allocated_unmeasured, failed_held


# Measures beside the classes that held time has, in the order of `HeldRows.overlays`.
OVERLAYS = (Overlay.POSSIBLY_LOST, Overlay.CONTESTED, Overlay.SUSPECT_HANG, Overlay.VRAM_IDLE)


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
    overlays: Array
    no_process: Array
    apart: Array
    shared: dict[tuple[int, str, int], int]
    """GPU time in micro-GPU-seconds that runs hold of each GPU (pool, gpu, slot) held in parts."""


def held_rows(held: Held, parts: Parts, least_hang_us: int) -> HeldRows:
    """Add up parts; a GPU that several runs share is rounded along one running sum.

    ``least_hang_us``: a run on a pool is not suspected to hang for less than that in a slice.
    """
    columns = parts.columns
    board = columns.pool * (len(columns.gpus) + 1) + columns.gpu
    split = (columns.gpu >= 0) & (columns.units < held.per_gpu)
    divided = (columns.gpu >= 0) & np.isin(board, board[split])
    whole = ~divided[parts.piece]
    rows = HeldRows(columns.gpus, columns.runs, *_whole(parts, whole, held.per_gpu), {})
    if divided.any():
        _add_divided(rows, parts, ~whole, held.per_gpu)
    hang = rows.overlays[:, OVERLAYS.index(Overlay.SUSPECT_HANG)]
    hang[hang < least_hang_us] = 0
    rows.no_process = np.minimum(rows.no_process, hang)
    rows.apart = np.minimum(rows.apart, hang - rows.no_process)
    return rows


def _whole(
    parts: Parts, chosen: Array, per_gpu: int
) -> tuple[Array, Array, Array, Array, Array, Array, Array, Array]:
    """Rows of whole GPUs: only activity needs rounding."""
    columns, piece = parts.columns, parts.piece[chosen]
    slot, dt = parts.slot[chosen], parts.t1[chosen] - parts.t0[chosen]
    keys = [columns.pool[piece], columns.gpu[piece], columns.run[piece], slot]
    order = in_order(*keys)
    keys = [key[order] for key in keys]
    first = np.ones(piece.shape[0], np.bool_)
    first[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    starts = np.flatnonzero(first)

    def total(values: Array) -> Array:
        return np.add.reduceat(values[order], starts) if starts.size else values[:0]

    thrown = columns.thrown[piece]
    units = dt * (columns.units[piece] // per_gpu)
    activity = parts.active[chosen]
    active = total(np.where(thrown == LOST, 0, activity))
    lost = total(np.where(thrown == LOST, activity, 0))
    measured = total(parts.time[chosen])
    live = total(np.where(columns.failed[piece] == 1, 0, units))
    everything = total(units)
    used = _half_up(active)
    busy = _half_up(active + lost)
    classes = np.column_stack(
        [used, busy - used, measured - busy, live - measured, everything - live]
    )
    possibly = _half_up(total(np.where(thrown == POSSIBLY, activity, 0)))
    contested = total(dt * (columns.contested[piece] // per_gpu))
    contested = np.minimum(contested, everything - classes[:, 3])
    untouched = _half_up(total(parts.untouched[chosen]))
    overlays = np.column_stack([possibly, contested, total(parts.hang[chosen]), untouched])
    absent, apart = total(parts.no_process[chosen]), total(parts.apart[chosen])
    pool, gpu, run, slot = (key[starts] for key in keys)
    return pool, gpu, run, slot, classes, overlays, absent, apart


def _half_up(active: Array) -> Array:
    return (2 * active + PPM) // (2 * PPM)


def _add_divided(rows: HeldRows, parts: Parts, chosen: Array, per_gpu: int) -> None:
    """Rows of GPUs held in parts: one running sum over each GPU and slice keeps them within it."""
    exact = _exact(parts, chosen)
    places, classes, extra, suspected = [], [], [], []
    for (pool, gpu, slot), by_run in sorted(exact.items()):
        flat = [step for run in sorted(by_run) for step in steps(by_run[run])]
        posts = chain(flat, per_gpu * PPM)
        rows.shared[pool, rows.gpus[gpu], slot] = sum(posts)
        for nth, run in enumerate(sorted(by_run)):
            mine = posts[CLASSES * nth : CLASSES * nth + CLASSES]
            places.append((pool, gpu, run, slot))
            classes.append(mine)
            extra.append(_overlays(by_run[run], mine, per_gpu))
            row = by_run[run]
            suspected.append((row.no_process // per_gpu, row.apart // per_gpu))
    place = np.array(places, np.int64)
    for column, name in enumerate(("pool", "gpu", "run", "slot")):
        setattr(rows, name, np.concatenate([getattr(rows, name), place[:, column]]))
    rows.classes = np.concatenate([rows.classes, np.array(classes, np.int64)])
    rows.overlays = np.concatenate([rows.overlays, np.array(extra, np.int64)])
    why = np.array(suspected, np.int64)
    rows.no_process = np.concatenate([rows.no_process, why[:, 0]])
    rows.apart = np.concatenate([rows.apart, why[:, 1]])


def _overlays(row: Row, posts: list[int], per_gpu: int) -> tuple[int, ...]:
    """In the order of `OVERLAYS`; never more than what was posted."""
    used, *_, unmeasured, _ = posts
    measured = sum(posts) - unmeasured
    return (
        min(chain([row.possibly], per_gpu * PPM)[0], used),
        min(row.contested // per_gpu, measured),
        min(row.hang // per_gpu, measured),
        min(chain([row.untouched], per_gpu * PPM)[0], measured),
    )


Exact = dict[tuple[int, int, int], dict[int, Row]]
"""Per (pool, gpu, slot) and run."""


def _exact(parts: Parts, chosen: Array) -> Exact:
    exact: Exact = defaultdict(lambda: defaultdict(Row))
    c = parts.columns
    for part in np.flatnonzero(chosen).tolist():
        piece = int(parts.piece[part])
        units, thrown = int(c.units[piece]), int(c.thrown[piece])
        board = (int(c.pool[piece]), int(c.gpu[piece]), int(parts.slot[part]))
        row = exact[board][int(c.run[piece])]
        dt = int(parts.t1[part] - parts.t0[part])
        active = units * int(parts.active[part])
        row.total += units * dt
        row.live += 0 if c.failed[piece] else units * dt
        row.measured += units * int(parts.time[part])
        row.contested += int(c.contested[piece]) * dt
        row.hang += units * int(parts.hang[part])
        row.no_process += units * int(parts.no_process[part])
        row.apart += units * int(parts.apart[part])
        row.untouched += units * int(parts.untouched[part])
        row.possibly += active if thrown == POSSIBLY else 0
        if thrown == LOST:
            row.lost += active
        else:
            row.active += active
    return exact
