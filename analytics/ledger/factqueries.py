"""How a build reads facts: doubles folded by key, the same rows in any order of arrival."""

from __future__ import annotations

NODES = """
WITH folded AS (
  SELECT node, coalesce(gpu_model, 'unknown') AS gpu_model, valid_from, max(gpus) AS gpus,
  max(cpus) AS cpus,
    max(mem_mib) AS mem_mib, max(partitions) AS partitions, max(rack) AS rack, max(leaf) AS leaf,
    max(spine) AS spine, bool_or(owned) AS owned, max(valid_to) AS valid_to
  FROM node WHERE cluster = ? GROUP BY ALL),
ended AS (
  SELECT *, least(coalesce(valid_to, 'infinity'), coalesce(lead(valid_from) OVER
    (PARTITION BY node, gpu_model ORDER BY valid_from), 'infinity')) AS ends FROM folded)
SELECT node, gpu_model, gpus, cpus, mem_mib, partitions, rack, leaf, spine, owned,
epoch_us(valid_from) AS t0,
  CASE WHEN isfinite(ends) THEN epoch_us(ends) END AS t1
FROM ended WHERE valid_from < ? AND ends > ? AND valid_from < ends ORDER BY node, gpu_model,
valid_from"""

# How many GPUs are installed, without what else is told of a node: no window, no grouping, which
# cost more than the rows of a fleet. Doubles are folded by whoever reads.
INSTALLED = """
SELECT node, coalesce(gpu_model, 'unknown') AS gpu_model, gpus, owned, epoch_us(valid_from) AS t0,
  CASE WHEN isfinite(valid_to) THEN epoch_us(valid_to) END AS t1
FROM node WHERE cluster = ? AND valid_from < ?"""

POWERED_DOWN = """
SELECT node, epoch_us(since) AS t0, epoch_us(until) AS t1 FROM node_state
WHERE cluster = ? AND state = 'powered_down' AND since < ?"""

_RUN = """
SELECT run_id, job_id, user_name, account, project, partition, qos, state,
  epoch_us(start_at) AS t0, epoch_us(end_at) AS t1, limit_s"""
_LIVE_RUN = """FROM job_run WHERE cluster = ? AND least(submit_at, eligible_at, start_at) < ?
  AND coalesce(end_at, 'infinity') > ?"""

RUNS_AS_TOLD = f"{_RUN}\n{_LIVE_RUN}"
"""Every row of each run; where no run has two, these are `RUNS`, for a third of the work."""

RUNS = f"""{_RUN}
FROM (SELECT *, row_number() OVER (PARTITION BY run_id ORDER BY end_at IS NULL,
        coalesce(end_at, last_known_at) DESC NULLS LAST, start_at DESC NULLS LAST, state, source)
        AS nth
      {_LIVE_RUN})
WHERE nth = 1"""

ALLOCATIONS = """
WITH folded AS (
  SELECT run_id, node, gpu_model, gpu_uuid, mig_uuid, start_at, max(gpus) AS gpus,
    arg_max(share_num, share_num / share_den) AS num, arg_max(share_den, share_num / share_den) AS
    den,
    max(cpus) AS cpus, max(mem_mib) AS mem_mib, max(end_at) AS end_at
  FROM allocation WHERE cluster = ? AND start_at < ? GROUP BY ALL),
run AS (
  SELECT run_id, max(end_at) AS end_at, max(last_known_at) AS last_known_at FROM job_run
  WHERE cluster = ? GROUP BY run_id),
covered AS (
  SELECT node, max(until) AS until FROM fact_window WHERE cluster = ? AND kind = 'scheduler' GROUP
  BY node),
ended AS (
  SELECT f.*, coalesce(f.end_at, r.end_at, r.last_known_at, greatest(
      (SELECT until FROM covered WHERE node IS NULL),
      (SELECT until FROM covered c WHERE c.node = f.node)), f.start_at) AS ends
  FROM folded f LEFT JOIN run r USING (run_id))
SELECT run_id, hash(run_id) AS run_code, node, gpu_model, gpu_uuid, mig_uuid, gpus, num, den,
  coalesce(cpus, 0) AS cpus,
  coalesce(mem_mib, 0) AS mem_mib, epoch_us(start_at) AS t0, epoch_us(ends) AS t1
FROM ended WHERE ends > ? AND start_at < ends
ORDER BY start_at, run_id, node, gpu_model, gpu_uuid, mig_uuid"""

STATES = """
SELECT node, state, epoch_us(since) AS t0, epoch_us(max(until)) AS t1 FROM node_state
WHERE cluster = ? AND since < ? GROUP BY node, state, since HAVING coalesce(max(until), 'infinity')
> ?
ORDER BY ALL"""

COVERAGE = """
SELECT DISTINCT node, kind, epoch_us(since) AS t0, epoch_us(until) AS t1 FROM fact_window
WHERE cluster = ? AND since < ? AND until > ? ORDER BY ALL"""

RESERVATIONS = """
SELECT name, node, max(gpus) AS gpus, max(accounts) AS accounts, epoch_us(since) AS t0,
epoch_us(max(until)) AS t1
FROM reservation WHERE cluster = ? AND since < ? GROUP BY name, node, since
HAVING coalesce(max(until), 'infinity') > ? ORDER BY ALL"""

FATALS = """
SELECT DISTINCT node, gpu_uuid, run_id, job_id, epoch_us(ts) AS t, EXISTS (
  SELECT 1 FROM allocation a WHERE a.cluster = event.cluster AND a.gpu_uuid = event.gpu_uuid
    AND coalesce(a.end_at, 'infinity') > event.ts) AS by_name
FROM event
WHERE cluster = ? AND ts < ? AND fatal AND kind IN ('xid', 'gpu_lost') AND node IS NOT NULL ORDER
BY t, node, gpu_uuid, run_id, job_id"""

SEEN = """
WITH broke AS (
  SELECT DISTINCT gpu_uuid FROM event WHERE cluster = $1 AND fatal AND gpu_uuid IS NOT NULL)
SELECT gpu_uuid, epoch_us(valid_to) AS t FROM device_seen JOIN broke USING (gpu_uuid)
WHERE cluster = $1 AND valid_to IS NOT NULL
UNION SELECT gpu_uuid, epoch_us(start_at) FROM allocation JOIN broke USING (gpu_uuid)
WHERE cluster = $1 ORDER BY ALL"""
