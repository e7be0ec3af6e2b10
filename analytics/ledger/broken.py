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


@dataclass(frozen=True, slots=True)
class Broken:
    """Every breakage, and the part of it in which no run held the GPU."""

    all: list[Breakage]
    loose: list[Breakage]


def mark_failed(facts: Facts, fleet: Fleet, held: Held) -> Broken:
    """Turn held time on broken GPUs and nodes into failed pieces."""
    found = breakages(facts, fleet)
    held.take_out({breakage.pool for breakage, _ in found}, fleet)
    loose: list[Breakage] = []
    for breakage, fatal in found:
        victims = _victims(held, breakage, None if fatal.by_name else _runs_of(fatal, facts))
        released = max((held.pieces[place].t1 for place in victims), default=breakage.t0)
        pieces = [
            p for place in victims for p in _split(held.pieces[place], breakage, held.per_gpu)
        ]
        for place in reversed(victims):
            held.pieces.pop(place)
        held.pieces.extend(pieces)
        if released < breakage.t1:
            loose.append(replace(breakage, t0=released))
    _mark_down(facts, fleet, held)
    return Broken([breakage for breakage, _ in found], loose)


def _runs_of(fatal: Fatal, facts: Facts) -> set[str]:
    """The runs that an event names and that held something when it happened."""
    runs = (
        facts.runs.of_job(fatal.job_id) if fatal.run_id is None else facts.runs.named(fatal.run_id)
    )
    return {
        run.run_id
        for run in runs
        if run.t0 is not None and run.t0 <= fatal.t and (run.t1 is None or fatal.t < run.t1)
    }


def _victims(held: Held, b: Breakage, runs: set[str] | None) -> list[int]:
    """Places of the pieces that hold the broken GPU: by its name (runs None) or of its run."""
    near = [
        place
        for place, piece in enumerate(held.pieces)
        if piece.pool == b.pool and not piece.failed and piece.t0 < b.t1 and piece.t1 > b.t0
    ]
    if runs is None:
        return [place for place in near if held.pieces[place].gpu == b.gpu]
    whole = [p for p in near if held.pieces[p].gpu is None and held.pieces[p].run_id in runs]
    chosen: list[int] = []
    until = 0
    for place in sorted(whole, key=lambda place: (held.pieces[place].t0, place)):
        if held.pieces[place].t0 >= until:
            chosen.append(place)
            until = held.pieces[place].t1
    return sorted(chosen)


def _split(piece: Piece, b: Breakage, per_gpu: int) -> list[Piece]:
    """One GPU of the piece is failed while it is broken, the others are not."""
    t0, t1 = max(b.t0, piece.t0), min(b.t1, piece.t1)
    broken = piece.units if piece.gpu is not None else per_gpu
    rest = piece.units - broken
    parts = [
        replace(piece, t0=t0, t1=t1, units=broken, failed=True, contested=0),
        replace(piece, t1=t0),
        replace(piece, t0=t1),
        replace(piece, t0=t0, t1=t1, units=rest, contested=min(piece.contested, rest)),
    ]
    return [part for part in parts if part.t0 < part.t1 and part.units > 0]


def _mark_down(facts: Facts, fleet: Fleet, held: Held) -> None:
    down: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for state in facts.states:
        if state.kind in FAILED_STATES:
            for pool in fleet.pools_of(state.node or ""):
                down[pool].append((state.t0, state.t1))
    if not down:
        return
    held.take_out(set(down), fleet)
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
