"""What is left of a GPU that is held in parts: its unassigned slices, as rows of their own."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

from analytics.ledger.broken import Breakage
from analytics.ledger.classes import NOT_HELD, LedgerClass, Overlay
from analytics.ledger.facts import Facts
from analytics.ledger.fleet import FAILED_STATES
from analytics.ledger.frame import Frame
from analytics.ledger.geometry import Boards
from analytics.ledger.held import Piece, spans_of
from analytics.ledger.split import split

Place = tuple[int, str, int]
"""pool, gpu, slot."""
Left = dict[Place, dict[LedgerClass | Overlay, int]]
"""Per (pool, gpu, slot) the micro-GPU-seconds of each class, later also of overlays."""


Blamed = list[tuple[tuple[int, int, str, str, str, str | None], int]]
"""(pool, slot, class, role, rule, run) and GPU time, as `causes` takes them."""


def remainders(
    frame: Frame, broken: list[Breakage], shared: dict[tuple[int, str, int], int]
) -> tuple[Left, Blamed]:
    """Classes of the unassigned part of each shared GPU; with the runs' rows they make the GPU
    whole. And who strands slices that fit no profile any more: by what they hold of the board."""
    facts, fleet, held = frame.facts, frame.fleet, frame.held
    pieces_of: dict[tuple[int, str], list[Piece]] = defaultdict(list)
    for piece in held.pieces:
        if piece.gpu is not None:
            pieces_of[piece.pool, piece.gpu].append(piece)
    exact: dict[Place, dict[LedgerClass, int]] = defaultdict(lambda: defaultdict(int))
    whole: dict[Place, int] = defaultdict(int)
    blame: dict[Place, dict[str | None, int]] = defaultdict(lambda: defaultdict(int))
    edges = frame.bounds.tolist()
    named = sorted({(pool, gpu) for pool, gpu, _ in shared})
    boards = Boards(frame.work, facts.cluster, [gpu for _, gpu in named])
    for pool, gpu in named:
        node, model = fleet.pools[pool]
        pieces = pieces_of[pool, gpu]
        marks = _marks(facts, node, [b for b in broken if b.pool == pool and b.gpu == gpu])
        for t0, t1, slot in _steps(pieces, marks, edges):
            live = [p for p in pieces if p.t0 <= t0 < p.t1]
            left = held.per_gpu - sum(p.units for p in live)
            place, name = (pool, gpu, slot), _class_at(marks, t0)
            whole[place] += t1 - t0
            if left and name is LedgerClass.FREE:
                migs = {p.mig for p in live if p.mig is not None}
                stranded = min(boards.stranded(gpu, model, held.per_gpu, migs), left)
                for p in live if stranded else ():
                    blame[place][p.run_id] += p.units * (t1 - t0)
                exact[place][LedgerClass.STRANDED_SHAPE] += stranded * (t1 - t0)
                left -= stranded
            if left:
                exact[place][name] += left * (t1 - t0)
    result: Left = {
        place: _spread(whole[place] - shared.get(place, 0), exact[place], held.per_gpu)
        for place in sorted(whole)
    }
    return result, list(_blamed(result, blame))


def _blamed(
    left: Left, blame: dict[tuple[int, str, int], dict[str | None, int]]
) -> Iterator[tuple[tuple[int, int, str, str, str, str | None], int]]:
    for (pool, gpu, slot), classes in left.items():
        amount = classes.get(LedgerClass.STRANDED_SHAPE, 0)
        if amount:
            weights = sorted(blame[pool, gpu, slot].items(), key=lambda pair: pair[0] or "")
            for run, part in split(amount, weights):
                yield (pool, slot, "stranded_shape", "causer", "mig-geometry", run), part


Marks = list[tuple[int, int, str]]


def _marks(facts: Facts, node: str, broken: list[Breakage]) -> Marks:
    marks: Marks = [(b.t0, b.t1, "failed") for b in broken]
    for state in facts.states:
        if state.node == node:
            kind = "failed" if state.kind in FAILED_STATES else "drained"
            marks.append((state.t0, state.t1, kind))
    for window in facts.coverage:
        if window.kind == "scheduler" and window.node in (None, node):
            marks.append((window.t0, window.t1, "known"))
    for kept in facts.reservations:
        if kept.node == node and kept.gpus is None:
            marks.append((kept.t0, kept.t1, "reserved"))
    return marks


def _class_at(marks: Marks, t: int) -> LedgerClass:
    now = {kind for t0, t1, kind in marks if t0 <= t < t1}
    if "failed" in now:
        return LedgerClass.FAILED
    if "drained" in now:
        return LedgerClass.DRAINED
    if "known" not in now:
        return LedgerClass.UNKNOWN
    return LedgerClass.RESERVED if "reserved" in now else LedgerClass.FREE


def _steps(pieces: list[Piece], marks: Marks, edges: list[int]) -> Iterator[tuple[int, int, int]]:
    """``(t0, t1, slot)`` of the time in which any piece holds, cut wherever something changes."""
    slot = 0
    for begin, end in spans_of(pieces):
        cuts = {begin, end} | {t for p in pieces for t in (p.t0, p.t1) if begin < t < end}
        cuts |= {t for mark in marks for t in mark[:2] if begin < t < end}
        cuts |= {t for t in edges if begin < t < end}
        ordered = sorted(cuts)
        for t0, t1 in itertools.pairwise(ordered):
            while edges[slot + 1] <= t0:
                slot += 1
            yield t0, t1, slot


def _spread(
    amount: int, exact: dict[LedgerClass, int], per_gpu: int
) -> dict[LedgerClass | Overlay, int]:
    """Exactly ``amount`` over the classes, by largest remainder, ties in class order."""
    classes = [name for name in NOT_HELD if exact.get(name)]
    if not classes:
        return {LedgerClass.FREE: amount} if amount else {}
    posts: dict[LedgerClass | Overlay, int] = {name: exact[name] // per_gpu for name in classes}
    ranked = sorted(classes, key=lambda name: (-(exact[name] % per_gpu), NOT_HELD.index(name)))
    step = 1 if amount >= sum(posts.values()) else -1
    place = 0
    while sum(posts.values()) != amount:
        name = ranked[place % len(ranked)]
        if posts[name] + step >= 0:
            posts[name] += step
        place += 1
    return posts
