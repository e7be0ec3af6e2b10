"""Held pieces as columns, their names as places in sorted lists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analytics.ledger.held import Held, Piece
from analytics.ledger.kernel.state import Array


@dataclass(frozen=True, slots=True)
class PieceColumns:
    """Columns of pieces; ``gpu``, ``mig`` and ``unit`` (the MIG instance or else the GPU) are -1
    where none is named."""

    runs: list[str]
    gpus: list[str]
    migs: list[str]
    units_named: list[str]
    pool: Array
    run: Array
    gpu: Array
    mig: Array
    unit: Array
    t0: Array
    t1: Array
    units: Array
    contested: Array
    failed: Array
    alone: Array
    thrown: Array


def columns_of(held: Held) -> PieceColumns:
    """Plain pieces first, then the others, each in their order."""
    plain, pieces = held.plain, held.pieces
    there = np.unique(plain.run)
    of_plain = [plain.runs[place] for place in there.tolist()]
    runs = sorted({p.run_id for p in pieces}.union(of_plain)) if pieces else of_plain
    rank = {name: place for place, name in enumerate(runs)}
    size = plain.pool.shape[0]
    to_rank = np.zeros(len(plain.runs), np.int64)
    to_rank[there] = [rank[name] for name in of_plain]
    no, nought, one = np.full(size, -1), np.zeros(size, np.int64), np.ones(size, np.int64)
    own = (
        plain.pool, to_rank[plain.run] if size else nought, no, no, no, plain.t0, plain.t1,
        plain.units, nought, nought, one, nought,
    )  # fmt: skip
    gpus = sorted({p.gpu for p in pieces if p.gpu is not None})
    migs = sorted({p.mig for p in pieces if p.mig is not None})
    named = sorted({str(p.mig or p.gpu) for p in pieces if p.gpu is not None})
    other = _table(pieces, rank, (gpus, migs, named))
    columns = [np.concatenate([a, b]) for a, b in zip(own, other, strict=True)]
    return PieceColumns(runs, gpus, migs, named, *columns)


def _table(
    pieces: list[Piece], run_rank: dict[str, int], names: tuple[list[str], list[str], list[str]]
) -> Array:
    ranks: list[dict[str | None, int]] = [
        {None: -1, **{name: place for place, name in enumerate(known)}} for known in names
    ]
    gpu, mig, unit = ranks
    rows = [
        (
            p.pool, run_rank[p.run_id], gpu[p.gpu], mig[p.mig],
            -1 if p.gpu is None else unit[p.mig or p.gpu],
            p.t0, p.t1, p.units, p.contested, p.failed, p.alone, p.thrown,
        )
        for p in pieces
    ]  # fmt: skip
    return np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 12).T)
