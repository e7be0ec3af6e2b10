"""The wide rows of ``ledger_hour`` from held time, the sweep and the slices left over."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa

from analytics.ledger.classes import CLASSES, INDEX, LedgerClass
from analytics.ledger.frame import Frame
from analytics.ledger.heldrows import OVERLAYS, HeldRows
from analytics.ledger.kernel.state import Array
from analytics.ledger.notheld import OVERLAY_INDEX
from analytics.ledger.order import in_order
from analytics.ledger.remainder import Left
from analytics.window import HOUR_US

# Where the columns of a HeldRows go.
_HELD_PLACES = [
    INDEX[name]
    for name in (
        LedgerClass.USED,
        LedgerClass.LOST,
        LedgerClass.ALLOCATED_IDLE,
        LedgerClass.ALLOCATED_UNMEASURED,
        LedgerClass.FAILED_HELD,
    )
]

_PLACE: dict[str, int] = {
    str(name.value): place for name, place in [*INDEX.items(), *OVERLAY_INDEX.items()]
}


def rows_table(frame: Frame, busy: HeldRows, rest: Array, left: Left) -> pa.Table:
    """All rows, in the order (slice, pool, GPU, run): the same facts give the same bytes."""
    pools, slots = np.nonzero(rest.any(axis=2))
    m = pools.shape[0]
    places = list(left)
    pool = np.concatenate([busy.pool, pools, [place[0] for place in places]]).astype(np.int64)
    slot = np.concatenate([busy.slot, slots, [place[2] for place in places]]).astype(np.int64)
    run = np.concatenate([busy.run, np.full(m + len(left), -1)]).astype(np.int64)
    gpu_names = sorted({*busy.gpus, *(place[1] for place in places)})
    rank = {name: place for place, name in enumerate(gpu_names)}
    to_rank = np.array([*(rank[name] for name in busy.gpus), -1], np.int64)
    gpu = np.concatenate(
        [to_rank[busy.gpu], np.full(m, -1), [rank[place[1]] for place in places]]
    ).astype(np.int64)
    some = np.ones(pool.shape[0], np.bool_)
    some[: busy.pool.shape[0]] = busy.classes.any(axis=1) | busy.overlays.any(axis=1)
    some[busy.pool.shape[0] + m :] = [any(classes.values()) for classes in left.values()]
    order = in_order(slot, pool, gpu, run)
    order = order[some[order]]
    names = pa.array(gpu_names, pa.string())
    pool_keys = frame.pool_keys()
    columns = _place_columns(frame, pool[order], slot[order], pool_keys)
    columns["gpu_uuid"] = names.take(_index(gpu[order]))
    keys, runs = frame.keys.of(busy.runs).astype(np.int32), run[order]
    for place, key in enumerate(("run_key", "holder_key")):
        columns[key] = _known(keys[:, place], runs)
    columns |= _amounts(busy, rest[pools, slots], left, order)
    return pa.table(columns)


def _amounts(busy: HeldRows, rest: Array, left: Left, order: Array) -> dict[str, Array]:
    """The columns of amounts; those that are nought for all are one and the same."""
    n, m = busy.pool.shape[0], rest.shape[0]
    held = dict(zip(_HELD_PLACES, busy.classes.T, strict=True))
    held |= {OVERLAY_INDEX[name]: busy.overlays[:, nth] for nth, name in enumerate(OVERLAYS)}
    others: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for nth, classes in enumerate(left.values()):
        for name, amount in classes.items():
            others[_PLACE[name]].append((n + m + nth, amount))
    nothing = np.zeros(order.shape[0], np.int64)
    found: dict[str, Array] = {}
    for column_name, place in _PLACE.items():
        column = np.zeros(n + m + len(left), np.int64)
        if place in held:
            column[:n] = held[place]
        column[n : n + m] = rest[:, place]
        for row, amount in others[place]:
            column[row] = amount
        found[column_name] = column[order] if column.any() else nothing
    return found


def _index(places: Array) -> Any:
    """Places as Arrow indices; -1 becomes null."""
    return pa.array(places, pa.int64(), mask=places < 0)


def _known(keys: Array, runs: Array) -> Any:
    """The key of each run; nobody (-1) has none."""
    return pa.array(np.append(keys, np.int32(0))[runs], mask=runs < 0)


def _place_columns(frame: Frame, pool: Array, slot: Array, pool_keys: Array) -> dict[str, Any]:
    begin, end = frame.bounds[:-1], frame.bounds[1:]
    price = frame.price_places()[pool, slot]
    time = pa.timestamp("us")
    return {
        "hour": pa.array(begin[slot] // HOUR_US * HOUR_US, time),
        "since": pa.array(begin[slot], time),
        "until": pa.array(end[slot], time),
        "pool_key": pool_keys[pool],
        "price_key": pa.array(price.astype(np.int32), mask=price < 0),
        "posting": np.zeros(pool.shape[0], np.int32),
    }


__all__ = ["CLASSES", "rows_table"]
