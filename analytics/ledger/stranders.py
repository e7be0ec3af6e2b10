"""Which runs strand the GPUs of a node, found for many stretches of time at once."""

from __future__ import annotations

import numpy as np

from analytics.ledger.frame import Frame
from analytics.ledger.host import HostShares
from analytics.ledger.kernel import blame as b
from analytics.ledger.kernel.state import Array
from analytics.window import to_us


def split_stranded(frame: Frame, rows: Array, host: HostShares) -> tuple[Array, Array]:
    """``rows`` of the sweep (pool, slot, code, job, instant, GPU time, most) joined while the same
    runs are on the node and with what had to be released (-1 = nothing) as a last column; and
    ``(row, run, GPU time)`` of each part, run -1 = nobody."""
    fleet = frame.fleet
    node_of = np.array(fleet.node_of, np.int64)
    rows = _joined(frame, rows, host, node_of)
    stranded = np.stack(
        [node_of[rows[:, 0]], *(rows[:, c] for c in (2, 4, 5, 6)), rows[:, 6] * 0 - 1]
    )
    inventory, inventory_node = _inventory(frame)
    spans = np.stack(
        [
            np.searchsorted(of, np.arange(len(fleet.nodes)), side)
            for of in (host.node, inventory_node)
            for side in ("left", "right")
        ]
    ).astype(np.int64)
    milli = host.cpus * 1000
    table = np.stack([host.run, host.gpus, milli, host.mem_mib, host.t0, host.t1])
    widest = int((spans[b.HOST_HI] - spans[b.HOST_LO]).max(initial=0)) + 3
    parts = np.zeros((5, widest), np.int64)
    demand = np.array(
        [
            [
                to_us(p.day),
                *(-1 if v is None else v for v in (p.middle.cpu_milli, p.middle.mem_mib)),
            ]
            for p in frame.profiles
        ],
        np.int64,
    )
    out = np.empty((4 * rows.shape[0] + 64, 3), np.int64)
    size = b.blame(stranded, table, inventory, spans, demand, parts, out)
    if size > out.shape[0]:
        out = np.empty((size, 3), np.int64)
        b.blame(stranded, table, inventory, spans, demand, parts, out)
    return np.column_stack([rows, stranded[b.S_RELEASE]]), out[:size]


def _joined(frame: Frame, rows: Array, host: HostShares, node_of: Array) -> Array:
    """Rows of one (pool, slot, code) as one while neither the runs nor the inventory of the node
    change."""
    start = int(min(rows[:, 4].min(), frame.bounds[0]))
    shift = max(int(frame.bounds[-1]) - start, 1).bit_length()
    changes = [(host.node, host.t0), (host.node, host.t1)]
    rank = {name: place for place, name in enumerate(frame.fleet.nodes)}
    inventory = [(rank[row.node], t) for row in frame.facts.pools for t in (row.t0, row.t1)]
    table = np.array(inventory, np.int64).reshape(-1, 2)
    changes.append((table[:, 0], table[:, 1]))
    cuts = np.concatenate([node << shift | _inside(t, start, shift) for node, t in changes])
    cuts = np.unique(cuts)
    epoch = np.searchsorted(cuts, node_of[rows[:, 0]] << shift | rows[:, 4] - start, "right")
    order = np.lexsort((rows[:, 4], epoch, rows[:, 2], rows[:, 1], rows[:, 0]))
    rows, epoch = rows[order], epoch[order]
    same = (rows[1:, :3] == rows[:-1, :3]).all(axis=1) & (epoch[1:] == epoch[:-1])
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    result = rows[first].copy()
    result[:, 5] = np.add.reduceat(rows[:, 5], first)
    result[:, 6] = np.maximum.reduceat(rows[:, 6], first)
    return result


def _inside(t: Array, start: int, shift: int) -> Array:
    return np.clip(t - start, 0, (1 << shift) - 1)


def _inventory(frame: Frame) -> tuple[Array, Array]:
    """The table of `kernel.blame` and the node of each of its columns."""
    rank = {name: place for place, name in enumerate(frame.fleet.nodes)}
    rows = [
        (
            rank[row.node], row.gpus, -1 if row.cpus is None else row.cpus * 1000,
            -1 if row.mem_mib is None else row.mem_mib, row.t0, row.t1,
        )
        for place in range(len(frame.fleet.pools))
        for row in frame.fleet.inventory[place]
    ]  # fmt: skip
    table = np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 6).T)
    return np.ascontiguousarray(table[1:]), table[0]
