"""The runs that a window of advice looks at."""

from __future__ import annotations

from collector.store import Work
from scheduler_advisor.advice.run import Run
from scheduler_advisor.advice.teams import Teams
from scheduler_advisor.window import Window

# One row = one GPU run that waited or held GPUs in the window, with its job's name.
_RUNS = """
CREATE OR REPLACE TEMP TABLE advice_run AS
WITH held AS (
  SELECT cluster, run_id, any_value(gpu_model) AS gpu_model, sum(gpus)::INTEGER AS gpus
  FROM allocation GROUP BY cluster, run_id)
SELECT r.cluster, r.run_id, r.job_id, r.attempt, j.name, r.user_name, r.account,
  coalesce(r.project, j.project) AS project, r.qos, r.partition AS queue, h.gpu_model,
  coalesce(r.gpus, h.gpus)::INTEGER AS gpus, coalesce(r.nodes, j.req_nodes) AS nodes, r.cpus,
  r.mem_mib, r.limit_s, j.req_mem_mib,
  coalesce(r.eligible_at, r.submit_at) AS submit_at, r.start_at, r.end_at, r.state, r.reason
FROM job_run r LEFT JOIN job j ON j.cluster = r.cluster AND j.job_id = r.job_id
LEFT JOIN held h ON h.cluster = r.cluster AND h.run_id = r.run_id
WHERE ($3::VARCHAR IS NULL OR r.cluster = $3) AND coalesce(r.gpus, h.gpus) > 0
  AND coalesce(r.eligible_at, r.submit_at) < $2 AND coalesce(r.end_at, $2) > $1
"""


def load_runs(
    work: Work, window: Window, cluster: str | None, teams: Teams
) -> dict[tuple[str, str], Run]:
    """Fill ``advice_run`` and return its rows, by (cluster, run id)."""
    work.execute(_RUNS, [window.since, window.until, cluster])
    runs = {}
    for row in work.rows("SELECT * FROM advice_run ORDER BY cluster, start_at, run_id"):
        at = row["start_at"] or row["submit_at"]
        team = teams.of(
            row["cluster"], at, account=row["account"], user_name=row["user_name"],
            project=row["project"], queue=row["queue"],
        )  # fmt: skip
        runs[row["cluster"], row["run_id"]] = Run(team=team, **row)
    return runs
