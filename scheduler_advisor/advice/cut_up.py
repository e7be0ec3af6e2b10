"""Hours in which as many GPUs as a job asks for stood free, only not where it asks for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.advice.amount import MICRO_GPU_S_PER_HOUR
from scheduler_advisor.advice.run import Run
from scheduler_advisor.advice.site import Site

# One row = GPU time in a pool that nobody held, by node and hour, while in service.
_FREE = """
SELECT c.cluster, c.node, c.gpu_model, c.hour, c.hour::DATE AS day, c.price, c.cash,
  sum(free + stranded_cpu + stranded_mem + stranded_shape + stranded_topology + gang_wait
    + policy_blocked)::BIGINT AS micro
FROM advice_cell c
WHERE c.cluster = $1 AND c.hour >= $3 AND c.hour < $4 AND (c.cluster, c.node) IN (
  SELECT (q.cluster, q.node) FROM advice_queue q WHERE $2::VARCHAR IS NULL OR q.queue = $2)
GROUP BY ALL HAVING micro > 0 ORDER BY c.hour, c.node
"""
# One row = a node that serves a queue. Where no node names the queues that it serves, as in a
# trace, every node serves every queue.
_QUEUE = """
CREATE OR REPLACE TEMP TABLE advice_queue AS
WITH named AS (
  SELECT DISTINCT cluster, node, unnest(partitions) AS queue FROM node WHERE gpus > 0)
SELECT * FROM named
UNION ALL
SELECT n.cluster, n.node, r.queue
FROM (SELECT DISTINCT cluster, node FROM node WHERE gpus > 0) n
JOIN (SELECT DISTINCT cluster, partition AS queue FROM job_run) r USING (cluster)
WHERE n.cluster NOT IN (SELECT cluster FROM named)
"""
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Free:
    """GPU time that nobody held in one hour, a row for each node."""

    rows: list[dict[str, Any]]

    @cached_property
    def gpus(self) -> float:
        """GPUs that stood free in all, mean of the hour."""
        micro: int = sum(row["micro"] for row in self.rows)
        return micro / MICRO_GPU_S_PER_HOUR

    @cached_property
    def _most(self) -> list[int]:
        return sorted((row["micro"] for row in self.rows), reverse=True)

    def cut_up_for(self, gpus: int, nodes: int | None) -> bool:
        """Whether as many GPUs as such a job asks for were free, but not on nodes as it asks for
        them for the whole hour; where there was such a place, something else held it back."""
        if self.gpus < gpus:
            return False
        if nodes is None:
            return True
        each = ceil(gpus / nodes)
        if each == 1:  # any free GPUs will do
            return False
        return len(self._most) < nodes or self._most[nodes - 1] < each * MICRO_GPU_S_PER_HOUR


Pool = dict[datetime, Free]


def read_queues(site: Site) -> None:
    """Fill ``advice_queue``, which `pool_hours` reads."""
    site.work.execute(_QUEUE)


def queues_of_nodes(site: Site, cluster: str) -> dict[str, frozenset[str]]:
    """The queues that each node serves."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in site.rows("SELECT node, queue FROM advice_queue WHERE cluster = $1", [cluster]):
        found[row["node"]].add(row["queue"])
    return {node: frozenset(queues) for node, queues in found.items()}


def pool_hours(site: Site, cluster: str, queue: str | None) -> Pool:
    """Free GPU time of a queue's nodes in every hour of the window."""
    span = [cluster, queue, site.window.since, site.window.until]
    hours: dict[datetime, list[dict[str, Any]]] = defaultdict(list)
    for row in site.rows(_FREE, span):
        hours[row["hour"]].append(row)
    return {hour: Free(rows) for hour, rows in hours.items()}


def waited(site: Site, run: Run) -> tuple[datetime, datetime]:
    """When the run waited within the window; the end is not after the begin if it did not."""
    until = min(run.start_at or run.end_at or site.window.until, site.window.until)
    return max(run.submit_at, site.window.since), until


def wanted(site: Site, pool: Pool, runs: Iterable[Run]) -> dict[datetime, float]:
    """GPU-seconds, by hour, that jobs which waited would have taken of the pool's free GPUs in one
    piece: of those for whom they were cut up, the largest first, as long as they fit."""
    hours = sorted(pool)
    shapes: dict[tuple[int, int | None], list[tuple[datetime, datetime]]] = defaultdict(list)
    for run in runs:
        since, until = waited(site, run)
        if run.attempt == 1 and run.gpus > 1 and since < until:
            shapes[run.gpus, run.nodes].append((since, until))
    left = {hour: pool[hour].gpus * 3600 for hour in hours}
    taken: dict[datetime, float] = defaultdict(float)
    for (gpus, nodes), waits in sorted(shapes.items(), key=lambda item: -item[0][0]):
        seconds = _seconds(waits, hours)
        for at in np.flatnonzero(seconds):
            hour = hours[at]
            if pool[hour].cut_up_for(gpus, nodes):
                fit = left[hour] // (gpus * 3600) * 3600
                won = min(seconds[at], fit) * gpus
                left[hour] -= won
                taken[hour] += won
    return taken


def _seconds(waits: list[tuple[datetime, datetime]], hours: list[datetime]) -> NDArray[np.float64]:
    """How long the waits lasted in each of ``hours``, summed."""
    begins, ends = (np.sort([pair[side].timestamp() for pair in waits]) for side in (0, 1))
    first = np.array([hour.timestamp() for hour in hours])
    running = [_since(begins, at) - _since(ends, at) for at in (first, first + 3600)]
    return running[1] - running[0]


def _since(edges: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Seconds from each of ``edges`` (in order) to ``at`` where it lies before, summed."""
    before = np.searchsorted(edges, at)
    return at * before - np.concatenate(([0.0], np.cumsum(edges)))[before]
