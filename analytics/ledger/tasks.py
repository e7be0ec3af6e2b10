"""The task distribution that fragmentation is measured against: what runs held of a node.

The shapes of the runs of the days before, at most `MOST_SHAPES` of the most frequent; named by a
hash of them.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa

from analytics.fragmentation import Distribution, Task, typical
from analytics.ledger.settings import LedgerSettings
from collector.store import Work

MOST_SHAPES = 64
_SHAPES = """
SELECT cpu_milli, gpus, milli, model, count(*) AS jobs FROM (
  SELECT a.run_id, a.node, any_value(r.model) AS model,
    coalesce(max(a.cpus), 0) * 1000 AS cpu_milli,
    CASE WHEN max(a.gpu_uuid) IS NULL THEN max(a.gpus) ELSE count(DISTINCT a.gpu_uuid) END AS gpus,
    CASE WHEN count(DISTINCT a.gpu_uuid) = 1
      THEN least(1000, CAST(sum(1000 * a.share_num // a.share_den) AS BIGINT)) ELSE 1000
      END AS milli
  FROM (SELECT DISTINCT run_id, node, gpu_uuid, mig_uuid, gpus, cpus, share_num, share_den
    FROM allocation WHERE cluster = $1 AND start_at >= $2 AND start_at < $3) a
  JOIN (SELECT run_id, min(job_id) AS job_id FROM job_run WHERE cluster = $1
    AND start_at >= $2 AND start_at < $3 GROUP BY run_id) USING (run_id)
  LEFT JOIN (SELECT job_id, max(req_gpu_model) AS model FROM job WHERE cluster = $1
    GROUP BY job_id) r USING (job_id)
  GROUP BY a.run_id, a.node)
GROUP BY ALL ORDER BY jobs DESC, cpu_milli, gpus, milli, model"""


def task_distribution(
    work: Work, cluster: str, day: datetime, settings: LedgerSettings
) -> Distribution:
    """The typical tasks of the days before ``day``; none without history."""
    since = day - timedelta(days=settings.demand_days)
    rows = work.rows(_SHAPES, [cluster, since, day])
    if sum(row["jobs"] for row in rows) < settings.demand_min_jobs:
        return Distribution(())
    tasks = {
        Task(r["cpu_milli"], r["gpus"], r["milli"], _models(r["model"])): r["jobs"]
        for r in rows[:MOST_SHAPES]
    }
    return typical(task for task, jobs in tasks.items() for _ in range(jobs))


def _models(text: str | None) -> tuple[str, ...]:
    return tuple(sorted({part.strip() for part in (text or "").split("|") if part.strip()}))


def tasks_table(known: dict[datetime, Distribution]) -> pa.Table:
    """Rows of ``task_distribution``, each distribution once."""
    rows = [
        (d.version, place, task, jobs)
        for d in {d.version: d for d in known.values()}.values()
        for place, (task, jobs) in enumerate(d.tasks)
    ]
    return pa.table(
        {
            "distribution": pa.array([row[0] for row in rows], pa.string()),
            "place": pa.array([row[1] for row in rows], pa.int32()),
            "cpu_milli": pa.array([row[2].cpu_milli for row in rows], pa.int64()),
            "gpus": pa.array([row[2].gpus for row in rows], pa.int32()),
            "gpu_milli": pa.array([row[2].gpu_milli for row in rows], pa.int32()),
            "gpu_models": pa.array([list(row[2].models) for row in rows], pa.list_(pa.string())),
            "jobs": pa.array([row[3] for row in rows], pa.int64()),
        }
    )
