"""Which multi-GPU jobs sit on more nodes or leaf switches than they needed.

"Needed" is what an empty cluster of the same GPU model would have offered: the fewest nodes whose
GPUs add up to the job's, and the fewest leaf switches whose nodes do. Whether a job communicates
heavily is known only from link or network counters (or from a topology that it asked for); where
they are missing it is said to be unknown, not guessed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from analytics.counters import gained
from collector.store import Work
from scheduler_advisor.window import Window

# One row = one node's part of a multi-GPU run that held GPUs in the window.
_PARTS = """
WITH part AS (
  SELECT cluster, run_id, node, any_value(gpu_model) AS gpu_model, sum(gpus)::BIGINT AS gpus,
    min(start_at) AS start_at, max(coalesce(end_at, $2)) AS end_at
  FROM allocation
  WHERE ($3::VARCHAR IS NULL OR cluster = $3) AND start_at < $2 AND coalesce(end_at, $2) > $1
  GROUP BY cluster, run_id, node),
big AS (SELECT cluster, run_id FROM part GROUP BY ALL HAVING sum(gpus) >= 2)
SELECT p.*, r.job_id, j.name, r.user_name, r.account, r.partition AS queue, j.topology,
  n.leaf, n.gpu_model AS node_model
FROM part p SEMI JOIN big b ON b.cluster = p.cluster AND b.run_id = p.run_id
LEFT JOIN job_run r ON r.cluster = p.cluster AND r.run_id = p.run_id
LEFT JOIN job j ON j.cluster = p.cluster AND j.job_id = r.job_id
ASOF LEFT JOIN (SELECT * FROM node ORDER BY valid_from) n
  ON n.cluster = p.cluster AND n.node = p.node AND n.valid_from <= p.start_at
ORDER BY p.cluster, p.run_id, p.node
"""

# One row = a node that existed at the end of the window.
_NODES = """
SELECT cluster, gpu_model, node, leaf, sum(gpus)::BIGINT AS gpus FROM node
WHERE ($2::VARCHAR IS NULL OR cluster = $2) AND gpus > 0 AND valid_from < $1
  AND (valid_to IS NULL OR valid_to >= $1)
GROUP BY cluster, gpu_model, node, leaf
"""

# One row = what a GPU of one run sent and received over its links, in bytes per second.
_TRAFFIC = f"""
WITH gpu AS (
  SELECT cluster, run_id, node, gpu_uuid, epoch(max(ts) - min(ts)) AS seconds,
    {gained("nvlink_tx_bytes")} + {gained("nvlink_rx_bytes")} AS moved
  FROM sample WHERE run_id IS NOT NULL AND ts >= $1 AND ts < $2
    AND ($3::VARCHAR IS NULL OR cluster = $3)
    AND nvlink_tx_bytes IS NOT NULL AND nvlink_rx_bytes IS NOT NULL
  GROUP BY cluster, run_id, node, gpu_uuid HAVING max(ts) > min(ts))
SELECT cluster, run_id,
  sum(moved) / sum(CASE WHEN moved IS NOT NULL THEN seconds END) AS bytes_per_s
FROM gpu GROUP BY cluster, run_id
"""  # noqa: S608 - our own names

# Control traffic stays in the megabytes; exchanging gradients every step does not.
HEAVY_BYTES_PER_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpread:
    """One multi-GPU run: where it sat and the least it needed. ``heavy`` None = not measured."""

    cluster: str
    run_id: str
    job_id: str | None
    name: str | None
    user_name: str | None
    account: str | None
    queue: str | None
    gpu_model: str | None
    gpus: int
    nodes: int
    nodes_needed: int
    leaves: int | None
    leaves_needed: int | None
    hours: float
    heavy: bool | None

    @property
    def spread(self) -> bool:
        """On more nodes or leaf switches than needed."""
        more_leaves = (
            self.leaves is not None
            and self.leaves_needed is not None
            and self.leaves > self.leaves_needed
        )
        return self.nodes > self.nodes_needed or more_leaves

    @property
    def gpu_hours(self) -> float:
        """GPU-hours the run held in the window."""
        return self.gpus * self.hours


def run_spreads(work: Work, window: Window, cluster: str | None = None) -> list[RunSpread]:
    """Every multi-GPU run of the window with its spread, in order of run id."""
    span = [window.since, window.until, cluster]
    nodes = work.rows(_NODES, [window.until, cluster])
    traffic = {(t["cluster"], t["run_id"]): t["bytes_per_s"] for t in work.rows(_TRAFFIC, span)}
    runs: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for part in work.rows(_PARTS, span):
        runs[part["cluster"], part["run_id"]].append(part)
    shapes = _shapes(nodes)
    return [_spread(parts, shapes, traffic.get(key), window) for key, parts in runs.items()]


_Shapes = Mapping[tuple[str, str | None], tuple[list[int], list[int] | None]]


def _shapes(nodes: Sequence[dict[str, Any]]) -> _Shapes:
    """Per cluster and model: GPUs per node and per leaf, largest first; None = leaves unknown."""
    by_node: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    by_leaf: dict[tuple[str, str | None], dict[str | None, int]] = defaultdict(dict)
    for node in nodes:
        key = (node["cluster"], node["gpu_model"])
        by_node[key].append(node["gpus"])
        by_leaf[key][node["leaf"]] = by_leaf[key].get(node["leaf"], 0) + node["gpus"]
    return {
        key: (
            sorted(gpus, reverse=True),
            None if None in by_leaf[key] else sorted(by_leaf[key].values(), reverse=True),
        )
        for key, gpus in by_node.items()
    }


def _needed(gpus: int, sizes: Sequence[int]) -> int:
    """How many of the largest ``sizes`` it takes to hold ``gpus``; all of them if too few."""
    held = count = 0
    for size in sizes:
        if held >= gpus:
            break
        held += size
        count += 1
    return max(1, count)


def _spread(
    parts: Sequence[dict[str, Any]], shapes: _Shapes, bytes_per_s: float | None, window: Window
) -> RunSpread:
    first = parts[0]
    gpus = sum(part["gpus"] for part in parts)
    model = first["gpu_model"] or first["node_model"]
    node_sizes, leaf_sizes = shapes.get((first["cluster"], model), ([], None))
    known = leaf_sizes is not None and all(part["leaf"] is not None for part in parts)
    start: datetime = max(window.since, min(part["start_at"] for part in parts))
    end: datetime = min(window.until, max(part["end_at"] for part in parts))
    heavy = None if bytes_per_s is None else bytes_per_s >= HEAVY_BYTES_PER_S
    return RunSpread(
        cluster=first["cluster"], run_id=first["run_id"], job_id=first["job_id"],
        name=first["name"], user_name=first["user_name"], account=first["account"],
        queue=first["queue"], gpu_model=model, gpus=gpus, nodes=len(parts),
        nodes_needed=min(len(parts), _needed(gpus, node_sizes)),
        leaves=len({part["leaf"] for part in parts}) if known else None,
        leaves_needed=_needed(gpus, leaf_sizes) if known and leaf_sizes is not None else None,
        hours=(end - start).total_seconds() / 3600,
        heavy=True if heavy is None and first["topology"] else heavy,
    )  # fmt: skip
