"""GPUs and nodes that broke: until when, and whose held time it cost."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, replace

from analytics.ledger.facts import FOREVER, Facts, Fatal
from analytics.ledger.fleet import FAILED_STATES, Fleet
from analytics.ledger.held import Held, Piece

_RETURNS = frozenset({*FAILED_STATES, "drained", "maintenance", "powered_down", "rebooting"})


@dataclass(frozen=True, slots=True)
class Breakage:
    """One GPU of a pool is broken over ``[t0, t1)``, known by its UUID where the facts name it."""

    pool: int
    gpu: str | None
    t0: int
    t1: int


def breakages(facts: Facts, fleet: Fleet) -> list[tuple[Breakage, Fatal]]:
    """Every fatal event as the time over which its GPU is out of order.

    A GPU is back when its node returns from an outage that ended later, when it left the node, or
    when a later run was given that very GPU.
    """
    back, left = _returns(facts)
    result: list[tuple[Breakage, Fatal]] = []
    broken_until: dict[tuple[int, str], int] = {}
    for fatal in facts.fatals:
        pools = fleet.pools_of(fatal.node)
        if not pools:
            continue
        ends = back[fatal.node] + (left[fatal.gpu_uuid] if fatal.gpu_uuid else [])
        t1 = min((t for t in ends if t > fatal.t), default=FOREVER)
        key = (pools[0], fatal.gpu_uuid or f"at {fatal.t}")
        if fatal.t < broken_until.get(key, 0):
            continue  # it was broken already
        broken_until[key] = t1
        if t1 > facts.since and fatal.t < facts.until:
            result.append((Breakage(pools[0], fatal.gpu_uuid, fatal.t, t1), fatal))
    return result


def _returns(facts: Facts) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Instants at which a node, or a named GPU, is known to be in order again."""
    back: dict[str, list[int]] = defaultdict(list)
    for state in facts.states:
        if state.kind in _RETURNS and state.t1 < FOREVER:
            back[state.node or ""].append(state.t1)
    left: dict[str, list[int]] = defaultdict(list)
    for gpu, t in facts.seen:
        left[gpu].append(t)
    return back, left


def mark_failed(facts: Facts, fleet: Fleet, held: Held) -> list[Breakage]:
    """Turn held time on broken GPUs and nodes into failed pieces; return what is broken and not
    held."""
    loose: list[Breakage] = []
    for breakage, fatal in breakages(facts, fleet):
        place = _holder(held, breakage, fatal, facts)
        if place is None:
            loose.append(breakage)
            continue
        piece = held.pieces.pop(place)
        held.pieces.extend(_split_units(piece, max(breakage.t0, piece.t0), held.per_gpu))
        if piece.t1 < breakage.t1:
            loose.append(replace(breakage, t0=piece.t1))
    _mark_down(facts, fleet, held)
    return loose


def _holder(held: Held, b: Breakage, fatal: Fatal, facts: Facts) -> int | None:
    """The piece whose run held the GPU when it broke; None where the facts do not tell."""
    runs = {fatal.run_id} if fatal.run_id else set()
    if fatal.job_id and not runs:
        runs = {r.run_id for r in facts.runs.values() if r.job_id == fatal.job_id}
    at = max(b.t0, facts.since)
    whole = None
    for place, piece in enumerate(held.pieces):
        if piece.pool != b.pool or piece.failed or not piece.t0 <= at < piece.t1:
            continue
        if b.gpu is not None and piece.gpu == b.gpu:
            return place
        if piece.gpu is None and piece.run_id in runs:
            whole = place
    return whole


def _split_units(piece: Piece, at: int, per_gpu: int) -> list[Piece]:
    """One GPU of the piece is failed from ``at`` on, the others are not."""
    broken = piece.units if piece.gpu is not None else per_gpu
    parts = [replace(piece, t0=at, units=broken, failed=True, contested=0)]
    if piece.t0 < at:
        parts.append(replace(piece, t1=at))
    if piece.units > broken:
        rest = piece.units - broken
        parts.append(replace(piece, t0=at, units=rest, contested=min(piece.contested, rest)))
    return parts


def _mark_down(facts: Facts, fleet: Fleet, held: Held) -> None:
    down: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for state in facts.states:
        if state.kind in FAILED_STATES:
            for pool in fleet.pools_of(state.node or ""):
                down[pool].append((state.t0, state.t1))
    if not down:
        return
    pieces: list[Piece] = []
    for piece in held.pieces:
        spans = [s for s in down[piece.pool] if s[0] < piece.t1 and s[1] > piece.t0]
        if piece.failed or not spans:
            pieces.append(piece)
        else:
            pieces.extend(_split_time(piece, spans))
    held.pieces[:] = pieces


def _split_time(piece: Piece, spans: list[tuple[int, int]]) -> list[Piece]:
    cuts = {piece.t0, piece.t1} | {t for span in spans for t in span if piece.t0 < t < piece.t1}
    ordered = sorted(cuts)
    return [
        replace(piece, t0=t0, t1=t1, failed=True, contested=0)
        if any(s[0] <= t0 < s[1] for s in spans)
        else replace(piece, t0=t0, t1=t1)
        for t0, t1 in itertools.pairwise(ordered)
    ]
