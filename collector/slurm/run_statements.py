"""The statements of `run_writer`: staged tables first, then what becomes of them."""

from __future__ import annotations

STAGED_RUNS = """
CREATE OR REPLACE TEMP TABLE slurm_run (
  run_id VARCHAR, job_id VARCHAR, name VARCHAR, account VARCHAR, user_name VARCHAR, project VARCHAR,
  qos VARCHAR, partition VARCHAR, submit_at TIMESTAMP, eligible_at TIMESTAMP, start_at TIMESTAMP,
  end_at TIMESTAMP, last_known_at TIMESTAMP, state VARCHAR, state_raw VARCHAR, reason VARCHAR,
  exit_code VARCHAR, priority BIGINT, gpus INTEGER, cpus INTEGER, mem_mib BIGINT, nodes INTEGER,
  suspended_s BIGINT, limit_s BIGINT, array_job_id VARCHAR, array_task VARCHAR, het_job_id VARCHAR,
  het_component INTEGER, req_nodes INTEGER, req_gpus INTEGER, req_gpu_model VARCHAR,
  req_cpus INTEGER, req_mem_mib BIGINT, labels VARCHAR)
"""
STAGED_ALLOCATIONS = """
CREATE OR REPLACE TEMP TABLE slurm_allocation (
  run_id VARCHAR, node VARCHAR, gpu_model VARCHAR, gpus INTEGER, cpus INTEGER, mem_mib BIGINT,
  start_at TIMESTAMP, end_at TIMESTAMP, source VARCHAR)
"""
# A run that the store knows the end of, or has seen later, is newer than this row.
OLDER = """
DELETE FROM slurm_run USING job_run AS r
WHERE r.cluster = ? AND r.run_id = slurm_run.run_id AND slurm_run.end_at IS NULL
  AND (r.end_at IS NOT NULL OR r.last_known_at > slurm_run.last_known_at)
"""
JOBS = """
CREATE OR REPLACE TEMP TABLE slurm_job AS
SELECT $1 AS cluster, job_id, name, account, user_name, project, qos,
  nullif(list_filter(string_split(coalesce(partition, ''), ','), lambda p: p <> ''), [])
    AS partitions,
  min(submit_at) OVER (PARTITION BY job_id) AS submit_at, array_job_id, array_task, het_job_id,
  het_component, req_nodes, req_gpus, req_gpu_model, req_cpus, req_mem_mib, limit_s,
  NULL::VARCHAR AS topology, labels, $2 AS source, submit_at AS last_submit_at
FROM slurm_run
QUALIFY row_number() OVER (
  PARTITION BY job_id ORDER BY submit_at DESC, start_at DESC NULLS LAST, run_id DESC) = 1
"""
# Of a job that the store knows from a later submission, only the first submit may be news.
KEEP_FIRST_SUBMIT = """
UPDATE job SET submit_at = j.submit_at FROM slurm_job AS j
WHERE job.cluster = $1 AND job.job_id = j.job_id AND job.submit_at > j.submit_at
"""
LATER_KNOWN = """
DELETE FROM slurm_job USING job_run AS r
WHERE r.cluster = $1 AND r.job_id = slurm_job.job_id AND r.submit_at > slurm_job.last_submit_at
"""
FIRST_SUBMIT = """
UPDATE slurm_job SET submit_at = least(slurm_job.submit_at, job.submit_at),
  labels = coalesce(slurm_job.labels, job.labels) FROM job
WHERE job.cluster = $1 AND job.job_id = slurm_job.job_id
"""
# Rows that say what is stored already are not written again: a live import asks every minute.
SAME_JOBS = """
DELETE FROM slurm_job WHERE job_id IN (SELECT job_id FROM (
  SELECT * EXCLUDE (last_submit_at) FROM slurm_job INTERSECT SELECT * FROM job WHERE cluster = $1))
"""
DELETE_JOBS = "DELETE FROM job WHERE cluster = $1 AND job_id IN (SELECT job_id FROM slurm_job)"
INSERT_JOBS = """
INSERT INTO job BY NAME
SELECT * EXCLUDE (last_submit_at) FROM slurm_job ORDER BY submit_at, job_id
"""
# The controller's own split of a run is better than the rule's, while accounting still names the
# same number of GPUs: then only the end is new.
EXACT_KNOWN = """
CREATE OR REPLACE TEMP TABLE slurm_exact AS
SELECT a.run_id, a.node, a.gpu_model, a.gpus, a.cpus, a.mem_mib, a.start_at, r.end_at, a.source
FROM allocation AS a JOIN slurm_run AS r USING (run_id)
WHERE a.cluster = $1 AND a.source = $2
  AND a.run_id NOT IN (SELECT run_id FROM slurm_allocation WHERE source = $2)
QUALIFY sum(a.gpus) OVER (PARTITION BY a.run_id) = r.gpus
"""
DROP_RULED = "DELETE FROM slurm_allocation WHERE run_id IN (SELECT run_id FROM slurm_exact)"
KEEP_EXACT = "INSERT INTO slurm_allocation FROM slurm_exact"
SAME_RUNS = """
CREATE OR REPLACE TEMP TABLE slurm_same AS
WITH stored AS (
  SELECT run_id, node, gpu_model, gpus, cpus, mem_mib, start_at, end_at, source FROM allocation
  WHERE cluster = $1 AND source IN ($2, $3) AND run_id IN (SELECT run_id FROM slurm_run)),
changed AS (
  (FROM slurm_allocation EXCEPT FROM stored) UNION ALL (FROM stored EXCEPT FROM slurm_allocation)),
columns_of_runs AS (
  SELECT run_id, job_id, account, user_name, project, qos, partition, submit_at, eligible_at,
    start_at, end_at, state, state_raw, reason, exit_code, priority, gpus, cpus, mem_mib, nodes,
    suspended_s, limit_s FROM slurm_run
  INTERSECT
  SELECT run_id, job_id, account, user_name, project, qos, partition, submit_at, eligible_at,
    start_at, end_at, state, state_raw, reason, exit_code, priority, gpus, cpus, mem_mib, nodes,
    suspended_s, limit_s FROM job_run WHERE cluster = $1)
SELECT run_id FROM columns_of_runs WHERE run_id NOT IN (SELECT run_id FROM changed)
"""
SEEN_LATER = """
UPDATE job_run SET last_known_at = s.last_known_at FROM slurm_run AS s
WHERE job_run.cluster = $1 AND job_run.run_id = s.run_id
  AND s.run_id IN (SELECT run_id FROM slurm_same)
  AND job_run.last_known_at IS DISTINCT FROM s.last_known_at
"""
DROP_SAME_RUNS = "DELETE FROM slurm_run WHERE run_id IN (SELECT run_id FROM slurm_same)"
DROP_SAME_ALLOCATIONS = (
    "DELETE FROM slurm_allocation WHERE run_id NOT IN (SELECT run_id FROM slurm_run)"
)
DELETE_ALLOCATIONS = """
DELETE FROM allocation WHERE cluster = $1 AND source IN ($2, $3)
  AND run_id IN (SELECT run_id FROM slurm_run)
"""
INSERT_ALLOCATIONS = """
INSERT INTO allocation BY NAME
SELECT $1 AS cluster, a.*, 1 AS share_num, 1 AS share_den FROM slurm_allocation AS a
ORDER BY start_at, run_id, node
"""
DELETE_RUNS = "DELETE FROM job_run WHERE cluster = $1 AND run_id IN (SELECT run_id FROM slurm_run)"
INSERT_RUNS = """
INSERT INTO job_run BY NAME
SELECT $1 AS cluster, run_id, job_id, 1 AS attempt, account, user_name, project, qos, partition,
  submit_at, eligible_at, start_at, end_at, state, state_raw, reason, exit_code, priority, gpus,
  cpus, mem_mib, nodes, suspended_s, limit_s, last_known_at, $2 AS source
FROM slurm_run ORDER BY submit_at, run_id
"""
# A submission that has started is no longer pending, whichever row came first.
DELETE_OVERTAKEN = """
DELETE FROM job_run USING job_run AS s
WHERE job_run.cluster = $1 AND s.cluster = $1 AND job_run.job_id = s.job_id
  AND job_run.submit_at = s.submit_at AND job_run.start_at IS NULL AND s.start_at IS NOT NULL
  AND s.job_id IN (SELECT job_id FROM slurm_run)
"""
NUMBER_ATTEMPTS = """
UPDATE job_run SET attempt = n.attempt FROM (
  SELECT run_id, row_number() OVER (
    PARTITION BY job_id ORDER BY submit_at, start_at NULLS LAST, run_id) AS attempt
  FROM job_run WHERE cluster = $1 AND job_id IN (SELECT job_id FROM slurm_run)) AS n
WHERE job_run.cluster = $1 AND job_run.run_id = n.run_id AND job_run.attempt <> n.attempt
"""
