-- One row = one GPU (or MIG instance) of one job ($2 of cluster $1) over one step of $3 seconds: means of its samples.
-- A sample belongs to the job by the run named at ingest, else by the device that the run held at that time.
WITH run AS (SELECT run_id FROM job_run WHERE cluster = $1 AND job_id = $2),
held AS (
  SELECT DISTINCT node, gpu_uuid, mig_uuid, start_at, end_at FROM allocation
  WHERE cluster = $1 AND gpu_uuid IS NOT NULL AND run_id IN (SELECT run_id FROM run)),
mine AS (
  SELECT * FROM sample WHERE cluster = $1 AND run_id IN (SELECT run_id FROM run)
  UNION ALL
  SELECT s.* FROM sample s JOIN held h ON h.node = s.node AND h.gpu_uuid = s.gpu_uuid
    AND h.mig_uuid IS NOT DISTINCT FROM s.mig_uuid AND s.ts > h.start_at AND (h.end_at IS NULL OR s.ts <= h.end_at)
  WHERE s.cluster = $1 AND s.run_id IS NULL),
-- Link counters only grow: a rate is what was added since the sample before; one that fell says nothing.
paced AS (
  SELECT *, nvlink_tx_bytes - lag(nvlink_tx_bytes) OVER device AS sent, epoch(ts - lag(ts) OVER device) AS since_s FROM mine
  WINDOW device AS (PARTITION BY node, coalesce(mig_uuid, gpu_uuid), gpu_index ORDER BY ts))
SELECT time_bucket(to_seconds($3), ts) AS ts, node, coalesce(mig_uuid, gpu_uuid) AS device,
  min(gpu_index)::INTEGER AS gpu_index, count(*)::INTEGER AS samples,
  avg(util_ratio) AS util_ratio, avg(mem_used_mib / nullif(mem_total_mib, 0)) AS mem_ratio,
  avg(power_mw) / 1000 AS power_w,
  sum(sent) FILTER (sent >= 0) / nullif(sum(since_s) FILTER (sent >= 0), 0) AS nvlink_tx_bytes_per_s
FROM paced GROUP BY time_bucket(to_seconds($3), ts), node, coalesce(mig_uuid, gpu_uuid),
  CASE WHEN coalesce(mig_uuid, gpu_uuid) IS NULL THEN gpu_index END
ORDER BY ts, node, gpu_index, device
