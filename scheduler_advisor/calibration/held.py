"""GPUs held at single instants of the past, and the jobs that waited because of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.outcome import Outcome
from scheduler_advisor.past import Past

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def held_at(start: Ints, end: Ints, gpus: Floats, at: Ints) -> Floats:
    """GPUs held at each instant of ``at`` by jobs that ran from ``start`` to ``end``."""
    first, last = np.argsort(start), np.argsort(end)
    up = np.concatenate([[0.0], np.cumsum(gpus[first])])
    down = np.concatenate([[0.0], np.cumsum(gpus[last])])
    held: Floats = (
        up[np.searchsorted(start[first], at, "right")]
        - down[np.searchsorted(end[last], at, "right")]
    )
    return held


def contested(past: Past, outcome: Outcome) -> int:
    """Jobs of the window that waited for GPUs, in reality or in the replay ``outcome``.

    The replay starts a job as soon as its shape has room, so every wait in it is one for room. In
    reality: half-way through its wait fewer GPUs were free in all than the job needs.
    """
    if past.wait_s is None:
        raise ValueError("no real starts: there is nothing to compare with")
    replayed = ~outcome.started | (outcome.first_start > np.maximum(past.jobs.eligible, past.since))
    half = past.jobs.submit + past.wait_s // 2
    gpus = past.gpus_held
    free = past.cluster.total_gpus - held_at(past.real_start, past.real_end, gpus, half)
    real = (past.wait_s > 0) & (free < gpus)
    return int((past.judged & (replayed | real)).sum())
