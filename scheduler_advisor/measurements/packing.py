"""Whether small jobs were put on emptier nodes although a fuller one had room for them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from collector.store import Work
from scheduler_advisor.window import Window

# One row = one run's start or end on one big node, in order; ends come before starts.
_EVENTS = """
WITH big AS (
  SELECT cluster, node, gpu_model, max(gpus)::INTEGER AS total, any_value(partitions) AS queues
  FROM node WHERE gpus >= 4 AND valid_from < $2 AND coalesce(valid_to, $2) >= $1
    AND ($3::VARCHAR IS NULL OR cluster = $3) GROUP BY cluster, node, gpu_model),
held AS (
  SELECT a.cluster, a.node, a.run_id, b.gpu_model, b.total, b.queues, sum(a.gpus)::INTEGER AS gpus,
    min(a.start_at) AS s, max(coalesce(a.end_at, $2)) AS e
  FROM allocation a JOIN big b ON b.cluster = a.cluster AND b.node = a.node
  WHERE a.start_at < $2 AND coalesce(a.end_at, $2) > $1 GROUP BY ALL)
SELECT *, s AS t, 1 AS sort, gpus AS delta FROM held
UNION ALL SELECT *, e AS t, 0 AS sort, -gpus AS delta FROM held
ORDER BY t, sort, cluster, node, run_id
"""
# One row = a big node with what a job must be able to use on it: its model and queues.
_NODES = """
SELECT cluster, node, gpu_model, max(gpus)::INTEGER AS total, any_value(partitions) AS queues
FROM node WHERE gpus >= 4 AND valid_from < $2 AND coalesce(valid_to, $2) >= $1
  AND ($3::VARCHAR IS NULL OR cluster = $3) GROUP BY cluster, node, gpu_model
"""


@dataclass(frozen=True, slots=True)
class Packing:
    """Starts of small jobs on big nodes of one pool: ``avoidable`` = a fuller node had the GPUs.

    CPU and memory of the fuller node are not looked at, so the share is an upper bound (modelled).
    """

    starts: int
    avoidable: int

    @property
    def avoidable_ratio(self) -> float:
        """Share of starts that a packing placement would have put elsewhere."""
        return self.avoidable / self.starts if self.starts else 0.0


def packing(work: Work, window: Window, cluster: str | None = None) -> dict[str, Packing]:
    """Per cluster; pools of different models or queues are never compared."""
    span = [window.since, window.until, cluster]
    pool_of: dict[tuple[str, str], tuple[Any, ...]] = {}
    levels: dict[tuple[Any, ...], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    free: dict[tuple[str, str], int] = {}
    for node in work.rows(_NODES, span):
        key = (node["cluster"], node["node"])
        pool_of[key] = (node["cluster"], node["gpu_model"], tuple(sorted(node["queues"] or ())))
        free[key] = node["total"]
        levels[pool_of[key]][node["total"]] += 1
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for event in work.rows(_EVENTS, span):
        key = (event["cluster"], event["node"])
        level, had, small = levels[pool_of[key]], free[key], event["gpus"] * 2 <= event["total"]
        if event["delta"] > 0 and small and event["s"] >= window.since:
            counts[event["cluster"]][0] += 1
            fuller = any(level[n] > 0 for n in range(event["gpus"], had))
            counts[event["cluster"]][1] += fuller
        level[had] -= 1
        free[key] = had - event["delta"]
        level[free[key]] += 1
    return {name: Packing(starts, avoidable) for name, (starts, avoidable) in counts.items()}
