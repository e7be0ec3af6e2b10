-- One row = one GPU job that waited at $1, the head of the queue first within its cluster.
-- From the scheduler's own queue where a snapshot of the hour before exists, else rebuilt from records:
-- eligible <= t < start (or < end, if it never started).
WITH latest AS (
  SELECT cluster, max(ts) AS ts FROM queue_snapshot
  WHERE ts <= $1 AND ts > $1 - INTERVAL 1 HOUR AND ($2::VARCHAR IS NULL OR cluster = $2)
  GROUP BY cluster),
wish AS (
  SELECT cluster, job_id, any_value(name) AS name, max(req_nodes) AS nodes, max(req_gpus) AS gpus,
    max(req_gpu_model) AS gpu_model, max(req_cpus) AS cpus, max(req_mem_mib) AS mem_mib, max(topology) AS topology
  FROM job GROUP BY cluster, job_id),
records AS (
  SELECT cluster, job_id, max(partition) AS queue, max(user_name) AS user_name, max(account) AS account,
    max(gpus) AS gpus, max(nodes) AS nodes, max(cpus) AS cpus, max(mem_mib) AS mem_mib, max(reason) AS reason,
    min(coalesce(eligible_at, submit_at)) AS since
  FROM job_run
  WHERE coalesce(eligible_at, submit_at) <= $1 AND coalesce(start_at > $1, true)
    AND coalesce(coalesce(end_at, CASE WHEN start_at IS NULL THEN last_known_at END) > $1, true)
    AND ($2::VARCHAR IS NULL OR cluster = $2)
  GROUP BY cluster, job_id),
seen AS (
  SELECT q.cluster, q.job_id, q.partition AS queue, q.user_name, q.account, q.gpus, q.nodes, q.cpus, q.mem_mib,
    q.reason, coalesce(r.since, q.submit_at) AS since, q.priority, 'snapshot' AS known_from
  FROM queue_snapshot q JOIN latest l ON l.cluster = q.cluster AND l.ts = q.ts
  LEFT JOIN records r ON r.cluster = q.cluster AND r.job_id = q.job_id
  UNION ALL
  SELECT cluster, job_id, queue, user_name, account, gpus, nodes, cpus, mem_mib, reason, since, NULL, 'records'
  FROM records WHERE cluster NOT IN (SELECT cluster FROM latest))
SELECT s.cluster, s.job_id, w.name, s.queue, s.user_name, s.account,
  coalesce(w.gpus, s.gpus)::INTEGER AS gpus, greatest(1, coalesce(w.nodes, s.nodes, 1))::INTEGER AS nodes,
  coalesce(w.cpus, s.cpus)::BIGINT AS cpus, coalesce(w.mem_mib, s.mem_mib)::BIGINT AS mem_mib,
  w.gpu_model, w.topology, s.reason, s.since, s.known_from
FROM seen s LEFT JOIN wish w ON w.cluster = s.cluster AND w.job_id = s.job_id
WHERE coalesce(w.gpus, s.gpus) > 0
ORDER BY s.cluster, s.priority DESC NULLS LAST, s.since, s.job_id
