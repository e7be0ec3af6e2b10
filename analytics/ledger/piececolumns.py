"""Held pieces as columns, their names as places in sorted lists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analytics.ledger.held import Piece
from analytics.ledger.kernel.state import Array


@dataclass(frozen=True, slots=True)
class PieceColumns:
    """Columns of pieces; ``gpu`` and ``unit`` (the MIG instance or else the GPU) are -1 where no
    GPU is named."""

    runs: list[str]
    gpus: list[str]
    units_named: list[str]
    pool: Array
    run: Array
    gpu: Array
    unit: Array
    t0: Array
    t1: Array
    units: Array
    contested: Array
    failed: Array
    alone: Array
    thrown: Array


def columns_of(pieces: list[Piece]) -> PieceColumns:
    runs = sorted({p.run_id for p in pieces})
    gpus = sorted({p.gpu for p in pieces if p.gpu is not None})
    named = sorted({p.mig or p.gpu for p in pieces if p.gpu is not None} - {None})
    run_rank = {name: place for place, name in enumerate(runs)}
    gpu_rank: dict[str | None, int] = {name: place for place, name in enumerate(gpus)}
    unit_rank: dict[str | None, int] = {name: place for place, name in enumerate(named)}
    gpu_rank[None] = unit_rank[None] = -1
    table = np.array(
        [
            (
                p.pool, run_rank[p.run_id], gpu_rank[p.gpu],
                -1 if p.gpu is None else unit_rank[p.mig or p.gpu],
                p.t0, p.t1, p.units, p.contested, p.failed, p.alone, p.thrown,
            )
            for p in pieces
        ],
        np.int64,
    ).reshape(-1, 11)  # fmt: skip
    columns = [np.ascontiguousarray(table[:, place]) for place in range(11)]
    return PieceColumns(runs, gpus, [str(name) for name in named], *columns)
