"""A sweep from beginning to end: what is known comes from the cache, the rest is replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.sweep.cache import Cache
from scheduler_advisor.sweep.cells import Cell
from scheduler_advisor.sweep.replay import Replayed
from scheduler_advisor.sweep.runners import Runner


def sweep(  # noqa: PLR0913 - what to run, where, and three ways to watch it
    jobs: Jobs,
    cluster: Cluster,
    cells: Sequence[Cell],
    runner: Runner,
    *,
    cache: Cache | None = None,
    clock: Callable[[], datetime] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[tuple[Cell, Replayed]]:
    """The result of every cell, in the order of ``cells``, wherever and whenever each ran.

    Equal cells run once. ``progress`` hears how many of how many are done. With a ``cache`` each
    result is kept as soon as it is there (``clock`` dates it), so a broken sweep goes on from it.
    """
    results: dict[Cell, Replayed] = {}
    for cell in cells:
        known = None if cache is None else cache.get(cell)
        if known is not None:
            results[cell] = known
    left = [cell for cell in dict.fromkeys(cells) if cell not in results]
    total = len(set(cells))
    progress(total - len(left), total)
    for cell, result in runner.finished(jobs, cluster, left):
        results[cell] = result
        if cache is not None and clock is not None:
            cache.put(cell, result, clock())
        progress(len(results), total)
    return [(cell, results[cell]) for cell in cells]
