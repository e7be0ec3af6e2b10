"""Held time: which run holds how much of which pool or named GPU, when; `resolve` finds it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from analytics.ledger.fleet import Fleet
from analytics.ledger.kernel.state import Array


@dataclass(frozen=True, slots=True)
class Piece:
    """``units`` of a pool that a run holds over ``[t0, t1)``; a GPU has ``Held.per_gpu`` units.

    ``gpu`` None = whole GPUs of the pool that the facts do not name. ``failed``: broken meanwhile.
    ``alone``: nobody else holds a part of the same GPU or MIG instance, so its activity is this
    run's.
    ``thrown``: see `lost`.
    """

    pool: int
    run_id: str
    gpu: str | None
    mig: str | None
    t0: int
    t1: int
    units: int
    contested: int = 0
    failed: bool = False
    alone: bool = True
    thrown: int = 0


@dataclass(frozen=True, slots=True)
class Conflict:
    """Facts that contradict each other, and the rule that decided."""

    node: str
    gpu: str | None
    run_id: str | None
    kind: str
    rule: str
    t0: int
    t1: int
    gpu_us: int
    text: str


@dataclass(slots=True)
class Plain:
    """Pieces of whole GPUs that the facts do not name and nothing contradicts, as columns; ``run``
    = places in ``runs``, which are in order of name."""

    runs: list[str]
    pool: Array
    run: Array
    t0: Array
    t1: Array
    units: Array

    def picked(self, some: Array) -> Plain:
        """Those at these places, or where ``some`` is true."""
        columns = (self.pool, self.run, self.t0, self.t1, self.units)
        return Plain(self.runs, *(column[some] for column in columns))

    def pieces(self) -> Iterator[Piece]:
        """The same as objects."""
        columns = (self.pool, self.run, self.t0, self.t1, self.units)
        for pool, run, t0, t1, units in zip(*(c.tolist() for c in columns), strict=True):
            yield Piece(pool, self.runs[run], None, None, t0, t1, units)


@dataclass(slots=True)
class Held:
    """Every piece of held time in a window, and what contradicts.

    Most pieces are ``plain``; the others are in ``pieces``. Of a node's pieces that are cut by what
    broke there, or whose GPUs the facts name, none are plain.
    """

    per_gpu: int
    plain: Plain
    pieces: list[Piece]
    conflicts: list[Conflict]

    def take_out(self, pools: Collection[int], fleet: Fleet) -> None:
        """Make objects of all plain pieces on the nodes of these pools."""
        if pools:
            node_of = np.array(fleet.node_of, np.int64)
            nodes = node_of[np.array(sorted(pools), np.int64)]
            self._to_objects(np.isin(node_of[self.plain.pool], nodes))

    def take_out_runs(self, run_ids: Collection[str]) -> None:
        """Make objects of the plain pieces of these runs."""
        places = [at for at, name in enumerate(self.plain.runs) if name in run_ids]
        self._to_objects(np.isin(self.plain.run, places))

    def _to_objects(self, some: Array) -> None:
        if some.any():
            self.pieces.extend(self.plain.picked(some).pieces())
            self.plain = self.plain.picked(~some)

    def all_pieces(self) -> Iterator[Piece]:
        """Every piece as an object."""
        yield from self.plain.pieces()
        yield from self.pieces


def spans_of(pieces: list[Piece]) -> list[tuple[int, int]]:
    """When any of the pieces holds."""
    spans: list[tuple[int, int]] = []
    for t0, t1 in sorted((piece.t0, piece.t1) for piece in pieces):
        if spans and t0 <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], t1))
        else:
            spans.append((t0, t1))
    return spans
