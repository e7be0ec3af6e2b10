"""How a build reads the queue: who waited from when to when, and what the scheduler listed."""

from __future__ import annotations

_RUNS = "FROM job_run WHERE cluster = $1 AND coalesce(eligible_at, submit_at) < $2"
_JOBS = "FROM job WHERE cluster = $1"
# Whether a run or a job has several rows: where none has, nothing is folded, which is most of it.
TOLD_TWICE = f"""
SELECT (SELECT count(*) > count(DISTINCT run_id) {_RUNS})
  OR (SELECT count(*) > count(DISTINCT job_id) {_JOBS})"""
AS_TOLD = f"""
WITH run AS (SELECT * {_RUNS}),
wish AS (
  SELECT job_id, req_nodes AS nodes, req_gpus AS gpus, req_gpu_model AS model, req_cpus AS cpus,
    req_mem_mib AS mem_mib, topology, partitions, limit_s
  {_JOBS})"""
FOLDED = f"""
WITH run AS (
  SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY run_id ORDER BY start_at IS NULL,
      end_at IS NULL, coalesce(end_at, last_known_at) DESC NULLS LAST, state, source) AS nth
    {_RUNS}) WHERE nth = 1),
wish AS (
  SELECT job_id, max(req_nodes) AS nodes, max(req_gpus) AS gpus, max(req_gpu_model) AS model,
    max(req_cpus) AS cpus, max(req_mem_mib) AS mem_mib, max(topology) AS topology,
    max(partitions) AS partitions, max(limit_s) AS limit_s
  {_JOBS} GROUP BY job_id)"""  # noqa: S608 - our own names
WAITING = """,
waiting AS (
  SELECT run.*, coalesce(eligible_at, submit_at) AS since, coalesce(start_at, end_at, last_known_at,
    (SELECT max(until) FROM fact_window WHERE cluster = $1 AND kind = 'scheduler')) AS until FROM
    run)
SELECT run_id, job_id, epoch_us(since) AS t0, epoch_us(until) AS t1, partition,
  coalesce(wish.gpus, w.gpus) AS gpus, coalesce(wish.nodes, w.nodes) AS nodes, wish.model,
  coalesce(wish.cpus, w.cpus) AS cpus, coalesce(wish.mem_mib, w.mem_mib) AS mem_mib,
  wish.topology, wish.partitions, coalesce(wish.limit_s, w.limit_s) AS limit_s
FROM waiting w LEFT JOIN wish USING (job_id)
WHERE until > $3 AND since < until AND coalesce(wish.gpus, w.gpus) > 0"""

SNAPSHOTS = """
SELECT DISTINCT epoch_us(ts) AS t, job_id, priority, reason, partition, nodes, gpus, gpus_per_node,
  gpu_model, cpus, mem_mib, limit_s, topology
FROM queue_snapshot WHERE cluster = ? AND ts < ? AND ts > ? ORDER BY t, job_id"""
