"""What teams did with their limits: what they left unused, and what their jobs waited for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.caps import Caps, paths_of
from scheduler_advisor.diagnosis.blocked import INSTANTS, instants
from scheduler_advisor.engine.live.make_tree import leaves_of
from scheduler_advisor.engine.live.settings import QuotaPart
from scheduler_advisor.past import Past

PEAK = 0.95  # what is used for five per cent of the time is used


@dataclass(frozen=True, slots=True)
class QueueUse:
    """One queue over the window. GPUs: ``peak`` held but for one hour in twenty; ``asked``: held
    or waited for, but for one in twenty; ``waiting``: waited for while only a limit held them
    back, mean."""

    name: str
    peak: float
    asked: float
    waiting: float


def uses(past: Past, quota: QuotaPart, caps: Caps) -> list[QueueUse]:
    """Every queue that has jobs, and those above them, from real starts."""
    names, rows = _amounts(past, quota, caps)
    peak, asked = (np.quantile(rows[at], PEAK, axis=0) for at in (0, 1))
    waiting = rows[2].mean(axis=0)
    return [
        QueueUse(name, float(peak[at]), float(asked[at]), float(waiting[at]))
        for at, name in enumerate(names)
    ]


def _amounts(past: Past, quota: QuotaPart, caps: Caps) -> tuple[list[str], NDArray[np.float64]]:
    """Held, asked for and held back by limits, by instant and queue."""
    _, leaf = leaves_of(past.jobs, quota)
    paths = paths_of(past.jobs, quota)
    names = sorted({name for path in paths for name in path})
    under = np.zeros((len(paths), len(names)))
    for at, path in enumerate(paths):
        under[at, [names.index(name) for name in path]] = 1.0
    gpus, jobs = past.gpus_held, past.jobs
    start, end = past.real_start, past.real_end
    rows = np.zeros((3, INSTANTS, len(names)))
    for place, at in enumerate(instants(past)):
        running = np.flatnonzero((start <= at) & (at < end))
        waiting = np.flatnonzero((jobs.eligible <= at) & (start > at) & (gpus > 0))
        limited = waiting[caps.hold_back(waiting, running)] if caps else waiting[:0]
        held, wanted, back = (
            np.bincount(leaf[own], gpus[own], len(paths)) @ under
            for own in (running, waiting, limited)
        )
        rows[:, place] = held, held + wanted, back
    return names, rows
