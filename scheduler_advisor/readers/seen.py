"""Who held what where, how much of it idle, and which jobs have shown that they can resume."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from scheduler_advisor.diagnosis.seen import Seen
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.readers.attempts import RESUMES


class Facts(Protocol):
    """What is needed of a store."""

    def query(self, sql: str, params: tuple[object, ...] = ()) -> pa.Table:
        """Rows as Arrow."""

    def rows(self, sql: str, params: Any = ()) -> list[dict[str, Any]]:
        """Rows as dicts."""


# One row = what a job's last run held on one node.
_HELD = """
WITH last AS (
  SELECT job_id, arg_max(run_id, coalesce(start_at, submit_at)) AS run_id FROM job_run
  WHERE cluster = $1 AND start_at < $3 AND coalesce(end_at, last_known_at, $3) > $2
  GROUP BY job_id)
SELECT last.job_id, a.node, sum(a.gpus * a.share_num / a.share_den)::DOUBLE AS gpus,
  max(coalesce(a.cpus, 0))::DOUBLE * 1000 AS cpu_milli,
  max(coalesce(a.mem_mib, 0))::DOUBLE AS mem_mib
FROM last JOIN allocation a ON a.cluster = $1 AND a.run_id = last.run_id
GROUP BY last.job_id, a.node ORDER BY last.job_id, a.node
"""
_IDLE = """
SELECT sum(h.allocated_idle)::DOUBLE / nullif(sum(h.used + h.lost + h.allocated_idle), 0) AS idle,
  nullif(sum(h.lost), 0)::DOUBLE
    / nullif(sum(h.used + h.lost + h.allocated_idle + h.allocated_unmeasured), 0) AS lost,
  sum(h.used + h.lost + h.allocated_idle)::DOUBLE / 3.6e9 AS measured
FROM ledger_hour h JOIN ledger_pool p ON p.pool_key = h.pool_key
WHERE p.cluster = $1 AND h.hour >= $2 AND h.hour < $3
"""
# One row = one job whose last reason to wait, beside priority and resources, was a limit of its
# account (1), its user (2) or its QoS (3) on what they hold at once; limits of a job are none.
_LIMITED = r"""
WITH told AS (
  SELECT job_id, reason FROM job_run WHERE cluster = $1 AND reason <> ''
  UNION SELECT job_id, reason FROM queue_snapshot WHERE cluster = $1 AND reason <> '')
SELECT job_id, max(CASE
  WHEN regexp_matches(reason, 'PerJob|PerNode|Wall|Minutes') THEN 0
  WHEN regexp_matches(reason, '^(QOS|Assoc)?Max.*PerUser|^AssocMax') THEN 2
  WHEN regexp_matches(reason, '^AssocGrp|^Association(Job|Resource)Limit|PerAccount') THEN 1
  WHEN regexp_matches(reason, '^QOS(Grp|Max)') THEN 3 ELSE 0 END) AS scope
FROM told GROUP BY job_id
"""


def read_seen(
    facts: Facts,
    cluster: str,
    span: tuple[datetime, datetime],
    jobs: Jobs,
    inventory: Cluster,
    topology_ratio: float | None = None,
) -> Seen:
    """What was observed in ``span``; jobs and nodes that the replay does not have are left out."""
    table = facts.query(_HELD, (cluster, *span))
    place = {str(name): at for at, name in enumerate(jobs.job_id)}
    job = np.array([place.get(n, -1) for n in table.column("job_id").to_pylist()], np.int64)
    node = np.array(
        [inventory.index.get(n, -1) for n in table.column("node").to_pylist()], np.int64
    )
    known = (job >= 0) & (node >= 0)
    idle = facts.rows(_IDLE, [cluster, *span])[0]

    def column(name: str) -> NDArray[np.float64]:
        values: NDArray[np.float64] = table.column(name).to_numpy()[known]
        return values

    return Seen(
        job[known], node[known], column("gpus"), column("cpu_milli"), column("mem_mib"),
        idle_ratio=idle["idle"] if idle["measured"] else None, topology_ratio=topology_ratio,
        lost_ratio=idle["lost"],
    )  # fmt: skip


def resumable(facts: Facts, cluster: str, jobs: Jobs) -> NDArray[np.bool_]:
    """Jobs with evidence that they go on after a stop instead of starting over."""
    named = {row["job_id"] for row in facts.rows(RESUMES, [cluster])}
    return np.array([str(name) in named for name in jobs.job_id], bool)


def limited(facts: Facts, cluster: str, jobs: Jobs) -> NDArray[np.int64] | None:
    """Whose limit the scheduler said held each job back, see `Past.by_limit`; None where it told
    no reason of any job."""
    told = {row["job_id"]: row["scope"] for row in facts.rows(_LIMITED, [cluster])}
    if not told:
        return None
    return np.array([told.get(str(name), 0) for name in jobs.job_id], np.int64)
