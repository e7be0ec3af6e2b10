-- One row = one part of the cluster at $1 (a node, rack, leaf or spine) and what would stop if it failed then: a job stops
-- whole when one of its nodes does. at_risk: GPU-hours since each such run's start or its last finished checkpoint.
WITH place AS (
  SELECT cluster, node, sum(gpus)::INTEGER AS gpus, any_value(rack) AS rack, any_value(leaf) AS leaf, any_value(spine) AS spine
  FROM node WHERE valid_from <= $1 AND (valid_to IS NULL OR valid_to > $1) AND ($2::VARCHAR IS NULL OR cluster = $2)
  GROUP BY cluster, node),
part AS (
  SELECT cluster, 'node' AS level, node AS name, node, gpus FROM place
  UNION ALL SELECT cluster, 'rack', rack, node, gpus FROM place WHERE rack IS NOT NULL
  UNION ALL SELECT cluster, 'leaf', leaf, node, gpus FROM place WHERE leaf IS NOT NULL
  UNION ALL SELECT cluster, 'spine', spine, node, gpus FROM place WHERE spine IS NOT NULL),
held AS (
  SELECT cluster, run_id, node, sum(gpus * share_num::DOUBLE / share_den) AS gpus FROM allocation
  WHERE gpus > 0 AND start_at <= $1 AND (end_at IS NULL OR end_at > $1) AND ($2::VARCHAR IS NULL OR cluster = $2)
  GROUP BY cluster, run_id, node),
saved AS (
  SELECT cluster, run_id, max(ts) AS saved_at FROM event
  WHERE kind = 'checkpoint_end' AND run_id IS NOT NULL AND ts <= $1 GROUP BY cluster, run_id),
run AS (
  SELECT h.cluster, h.run_id, sum(h.gpus) AS gpus, any_value(r.account) AS account,
    greatest(min(r.start_at), any_value(s.saved_at)) AS kept_at
  FROM held h JOIN job_run r ON r.cluster = h.cluster AND r.run_id = h.run_id
  LEFT JOIN saved s ON s.cluster = h.cluster AND s.run_id = h.run_id
  GROUP BY h.cluster, h.run_id),
hit AS (
  SELECT DISTINCT p.cluster, p.level, p.name, h.run_id
  FROM part p JOIN held h ON h.cluster = p.cluster AND h.node = p.node),
stopped AS (
  SELECT h.cluster, h.level, h.name, count(*)::INTEGER AS jobs, sum(r.gpus) AS job_gpus,
    count(DISTINCT r.account)::INTEGER AS accounts, sum(r.gpus * epoch($1 - r.kept_at)) / 3600 AS at_risk_gpu_hours
  FROM hit h JOIN run r ON r.cluster = h.cluster AND r.run_id = h.run_id
  GROUP BY h.cluster, h.level, h.name)
SELECT p.cluster, p.level, p.name, count(*)::INTEGER AS nodes, sum(p.gpus)::INTEGER AS gpus,
  coalesce(any_value(s.jobs), 0)::INTEGER AS jobs, coalesce(any_value(s.job_gpus), 0)::DOUBLE AS job_gpus,
  coalesce(any_value(s.accounts), 0)::INTEGER AS accounts,
  coalesce(any_value(s.at_risk_gpu_hours), 0)::DOUBLE AS at_risk_gpu_hours
FROM part p LEFT JOIN stopped s ON s.cluster = p.cluster AND s.level = p.level AND s.name = p.name
GROUP BY p.cluster, p.level, p.name
ORDER BY p.cluster, job_gpus DESC, gpus DESC, p.level, p.name
