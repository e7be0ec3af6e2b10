"""MIG boards that nobody holds: rows of their own, as the slices of a held one have.

The sweep counts GPUs without names. What it posted for a node is the same for every GPU of it,
except where jobs claim some of them: those want whole GPUs, so a board that is cut into instances
is taken from what is free first, and from what the sweep's first rules posted last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from analytics.ledger.classes import INDEX, NOT_HELD
from analytics.ledger.frame import Frame
from analytics.ledger.held import Piece, spans_of
from analytics.ledger.kernel.state import Array
from analytics.ledger.remainder import Left, Place
from analytics.window import from_us

Span = tuple[int, int]
_FREE_FIRST = tuple(reversed(NOT_HELD))
_CUT_UP = """
SELECT m.node, m.gpu_uuid, max(d.gpu_model) AS gpu_model, epoch_us(valid_from) AS t0,
  coalesce(epoch_us(max(valid_to)), 9223372036854775807) AS t1
FROM mig_instance m LEFT JOIN device d ON d.cluster = m.cluster AND d.gpu_uuid = m.gpu_uuid
WHERE m.cluster = ? AND valid_from < ? AND coalesce(valid_to, 'infinity') > ?
GROUP BY m.node, m.gpu_uuid, valid_from ORDER BY ALL"""


def cut_up(frame: Frame) -> dict[tuple[int, str], list[Span]]:
    """(pool, GPU) -> when the board is cut into instances, within the window."""
    since, until = int(frame.bounds[0]), int(frame.bounds[-1])
    found: dict[tuple[int, str], list[Span]] = defaultdict(list)
    params = [frame.facts.cluster, from_us(until), from_us(since)]
    for row in frame.work.rows(_CUT_UP, params):
        pools = frame.fleet.pools_of(row["node"])
        exact = [pool for pool in pools if frame.fleet.pools[pool][1] == row["gpu_model"]]
        for pool in (exact or pools)[:1]:
            span = (max(row["t0"], since), min(row["t1"], until))
            found[pool, row["gpu_uuid"]].append(span)
    return {place: _merged(spans) for place, spans in found.items()}


def name_idle_boards(
    frame: Frame, rest: Array, left: Left, boards: dict[tuple[int, str], list[Span]]
) -> set[Place]:
    """Move the time of idle boards from the pools' rows (``rest``) to rows of their own (``left``),
    as far as the pool has so much; returns whose."""
    pieces_of: dict[tuple[int, str], list[Piece]] = defaultdict(list)
    for piece in frame.held.pieces if boards else ():
        if piece.gpu is not None:
            pieces_of[piece.pool, piece.gpu].append(piece)
    named: set[Place] = set()
    for pool, gpu in sorted(boards):
        for span in boards[pool, gpu]:
            for t0, t1 in _without(span, spans_of(pieces_of[pool, gpu])):
                for slot, amount in _by_slot(frame, t0, t1):
                    if _move(rest, left, (pool, gpu, slot), amount):
                        named.add((pool, gpu, slot))
    return named


def _move(rest: Array, left: Left, place: Place, amount: int) -> bool:
    pool, _, slot = place
    moved = False
    for name in _FREE_FIRST:
        part = min(amount, int(rest[pool, slot, INDEX[name]]))
        if part:
            rest[pool, slot, INDEX[name]] -= part
            own = left.setdefault(place, {})
            own[name] = own.get(name, 0) + part
            amount -= part
            moved = True
    return moved


def _by_slot(frame: Frame, t0: int, t1: int) -> Iterator[tuple[int, int]]:
    edges = frame.bounds
    slot = int(edges.searchsorted(t0, "right")) - 1
    while t0 < t1:
        end = min(t1, int(edges[slot + 1]))
        yield slot, end - t0
        t0, slot = end, slot + 1


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for t0, t1 in sorted(spans):
        if merged and t0 <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], t1))
        else:
            merged.append((t0, t1))
    return merged


def _without(span: Span, held: list[Span]) -> Iterator[Span]:
    at, end = span
    for t0, t1 in held:
        if t1 > at and t0 < end:
            if at < t0:
                yield at, t0
            at = max(at, t1)
    if at < end:
        yield at, end
