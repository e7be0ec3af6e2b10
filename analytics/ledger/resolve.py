"""From allocations to held time: who gets what where facts contradict each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import lcm

import numpy as np

from analytics.errors import LedgerError
from analytics.ledger.allocations import Allocation
from analytics.ledger.facts import Facts
from analytics.ledger.fit import Claim, Excess, Grant, fit
from analytics.ledger.fleet import Fleet, clip
from analytics.ledger.held import Conflict, Held, Piece, Plain, spans_of
from analytics.ledger.kernel.state import Array
from analytics.ledger.order import stable_order
from analytics.ledger.room import crowded_pools

_MAX_UNITS = 1_000_000


def resolve(facts: Facts, fleet: Fleet, since: int, until: int) -> Held:
    """Who holds what over ``[since, until)``.

    Raises LedgerError when the shares' denominators have no common one below a million.
    """
    claims = facts.allocations
    live = (claims.gpus > 0) & (claims.t0 < until) & (claims.t1 > since)
    per_gpu = lcm(*np.unique(claims.den[claims.gpu >= 0]).tolist())
    if per_gpu > _MAX_UNITS:
        raise LedgerError(
            f"cluster {facts.cluster}: GPU shares with denominators that have no common one below "
            f"{_MAX_UNITS}: give shares in slices or per cent"
        )
    rows = np.flatnonzero(live)
    pool = _pools(facts, fleet)[rows]
    held = Held(per_gpu, _no_pieces(), [], [])
    for a in claims.at(rows[pool < 0]):
        held.conflicts.append(_homeless(replace(a, t0=max(a.t0, since), t1=min(a.t1, until))))
    rows, pool = rows[pool >= 0], pool[pool >= 0]
    order = stable_order(pool)
    rows, pool = rows[order], pool[order]
    t0, t1 = np.maximum(claims.t0[rows], since), np.minimum(claims.t1[rows], until)
    node_of = np.array(fleet.node_of, np.int64)
    odd = pool[claims.gpu[rows] >= 0]
    crowded = crowded_pools((pool, t0, t1, claims.gpus[rows]), fleet.installed, (since, until))
    special = np.isin(node_of[pool], node_of[np.concatenate([odd, crowded])])
    units = claims.gpus[rows] * per_gpu
    held.plain = Plain(claims.runs, pool, claims.run[rows], t0, t1, units).picked(~special)
    placed: dict[int, list[Allocation]] = defaultdict(list)
    for place, a in zip(pool[special].tolist(), claims.at(rows[special]), strict=True):
        placed[place].append(a)
    for place in sorted(placed):
        _resolve_pool(held, fleet, place, placed[place], (since, until))
    return held


def _no_pieces() -> Plain:
    no = np.zeros(0, np.int64)
    return Plain([], no, no, no, no, no)


def _pools(facts: Facts, fleet: Fleet) -> Array:
    """The pool that each allocation takes from, -1 = none."""
    claims = facts.allocations
    width = len(claims.models) + 1
    pairs, of = np.unique(claims.node * width + claims.model + 1, return_inverse=True)
    models: list[str | None] = [None, *claims.models]
    found = [
        fleet.pool_for(claims.nodes[pair // width], models[pair % width]) for pair in pairs.tolist()
    ]
    places = np.array([-1 if place is None else place for place in found], np.int64)
    return places[of] if places.size else of


def _homeless(a: Allocation) -> Conflict:
    return Conflict(
        a.node, a.gpu_uuid, a.run_id, "no_inventory", "inventory-decides", a.t0, a.t1,
        a.gpus * (a.t1 - a.t0) * a.num // a.den,
        f"run {a.run_id} holds {a.gpus} GPUs of {a.node}, which has none: import its "
        "inventory",
    )  # fmt: skip


def _resolve_pool(
    held: Held, fleet: Fleet, pool: int, allocations: list[Allocation], span: tuple[int, int]
) -> None:
    named: dict[str, list[Allocation]] = defaultdict(list)
    for allocation in allocations:
        if allocation.gpu_uuid is not None:
            named[allocation.gpu_uuid].append(allocation)
    node = fleet.pools[pool][0]
    boards = {gpu: _resolve_gpu(held, (pool, node, gpu), named[gpu], span) for gpu in sorted(named)}
    whole = [a for a in _unnamed(allocations) if a.t0 < span[1] and a.t1 > span[0]]
    touched = [(gpu, t0, t1) for gpu in boards for t0, t1 in spans_of(boards[gpu])]
    claims = [_claim(a, i, a.gpus, span) for i, a in enumerate(whole)]
    # A GPU that the facts name is believed before a mere count.
    claims += [Claim((0, gpu, i), t0, t1, 1) for i, (gpu, t0, t1) in enumerate(touched)]
    grants, excess = fit(claims, clip(fleet.installed[pool], *span))
    for grant in grants:
        held.pieces.extend(_pieces(held, pool, whole, (touched, boards), grant))
    for over in excess:
        run = whole[over.claim].run_id if over.claim < len(whole) else None
        gpu = None if run is not None else touched[over.claim - len(whole)][0]
        held.conflicts.append(_too_many(node, gpu, run, over))


def _pieces(
    held: Held,
    pool: int,
    whole: list[Allocation],
    named: tuple[list[tuple[str, int, int]], dict[str, list[Piece]]],
    grant: Grant,
) -> Iterator[Piece]:
    if grant.claim < len(whole):
        run = whole[grant.claim].run_id
        amounts = (grant.amount * held.per_gpu, grant.contested * held.per_gpu)
        yield Piece(pool, run, None, None, grant.t0, grant.t1, *amounts)
        return
    for piece in named[1][named[0][grant.claim - len(whole)][0]]:
        t0, t1 = max(piece.t0, grant.t0), min(piece.t1, grant.t1)
        if t0 < t1:
            contested = piece.units if grant.contested else piece.contested
            yield replace(piece, t0=t0, t1=t1, contested=contested)


def _resolve_gpu(
    held: Held, place: tuple[int, str, str], allocations: list[Allocation], span: tuple[int, int]
) -> list[Piece]:
    pool, node, gpu = place
    claims = [_claim(a, i, held.per_gpu * a.num // a.den, span) for i, a in enumerate(allocations)]
    grants, excess = fit(claims, [(*span, held.per_gpu)])
    for over in excess:
        share = replace(over, amount=1)
        conflict = _too_many(node, gpu, allocations[over.claim].run_id, share)
        held.conflicts.append(
            replace(conflict, gpu_us=(over.t1 - over.t0) * over.amount // held.per_gpu)
        )
    pieces = [
        Piece(
            pool, allocations[g.claim].run_id, gpu, allocations[g.claim].mig_uuid, g.t0, g.t1,
            g.amount, g.contested,
        )
        for g in grants
    ]  # fmt: skip
    return _together(pieces)


def _together(pieces: list[Piece]) -> list[Piece]:
    """Pieces of one GPU without overlaps of a run on an instance, knowing who is alone there."""
    units: dict[str | None, list[Piece]] = defaultdict(list)
    for piece in pieces:
        units[piece.mig].append(piece)
    return [piece for same in units.values() for piece in _apart(same)]


def _apart(same: list[Piece]) -> Iterator[Piece]:
    """One instance's pieces; where they overlap, cut, and one piece per run."""
    ordered = sorted(same, key=lambda piece: piece.t0)
    if all(a.t1 <= b.t0 for a, b in pairwise(ordered)):
        yield from ordered
        return
    for t0, t1 in pairwise(sorted({t for piece in same for t in (piece.t0, piece.t1)})):
        live: dict[str, list[Piece]] = defaultdict(list)
        for piece in same:
            if piece.t0 <= t0 < piece.t1:
                live[piece.run_id].append(piece)
        for mine in live.values():
            units, contested = sum(p.units for p in mine), sum(p.contested for p in mine)
            whole = replace(mine[0], t0=t0, t1=t1, units=units, contested=contested)
            yield replace(whole, alone=len(live) == 1)


def _claim(a: Allocation, place: int, amount: int, span: tuple[int, int]) -> Claim:
    """Clipped to the window, ranked by its true start: any window decides alike."""
    return Claim((a.t0, a.run_id, place), max(a.t0, span[0]), min(a.t1, span[1]), amount)


def _too_many(node: str, gpu: str | None, run: str | None, over: Excess) -> Conflict:
    where = f"GPU {gpu}" if gpu else node
    return Conflict(
        node, gpu, run, "held_twice" if gpu else "more_held_than_installed",
        "earlier-start-holds", over.t0, over.t1, over.amount * (over.t1 - over.t0),
        f"{where}: run {run or gpu} claims more than is there; the run that started first keeps it",
    )  # fmt: skip


def _unnamed(allocations: list[Allocation]) -> Iterator[Allocation]:
    """Unnamed allocations, less the GPUs that another source names for the run at that time."""
    named: dict[str, list[Allocation]] = defaultdict(list)
    for a in allocations:
        if a.gpu_uuid is not None:
            named[a.run_id].append(a)
    for a in allocations:
        if a.gpu_uuid is not None:
            continue
        if a.run_id not in named:
            yield a
            continue
        cuts = {a.t0, a.t1} | {t for n in named[a.run_id] for t in (n.t0, n.t1) if a.t0 < t < a.t1}
        for t0, t1 in zip(sorted(cuts), sorted(cuts)[1:], strict=False):
            known = {n.gpu_uuid for n in named[a.run_id] if n.t0 <= t0 < n.t1}
            if a.gpus > len(known):
                yield replace(a, gpus=a.gpus - len(known), t0=t0, t1=t1)
