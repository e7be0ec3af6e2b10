-- One row = one GPU job that waited or ran in [$1, $2), over all its runs; wait_s up to $2 where it has not started.
SELECT r.cluster, r.job_id, any_value(j.name) AS name, any_value(r.user_name) AS user_name,
  any_value(r.account) AS account, arg_max(r.partition, r.attempt) AS queue, arg_max(r.state, r.attempt) AS state,
  max(r.gpus)::INTEGER AS gpus, max(r.nodes)::INTEGER AS nodes, count(DISTINCT r.run_id)::INTEGER AS runs,
  min(coalesce(r.eligible_at, r.submit_at)) AS eligible_at, min(r.start_at) AS start_at,
  CASE WHEN bool_or(r.start_at IS NOT NULL AND r.end_at IS NULL) THEN NULL ELSE max(r.end_at) END AS end_at,
  greatest(0, date_diff('second', min(coalesce(r.eligible_at, r.submit_at)),
    coalesce(min(r.start_at), max(r.end_at), $2)))::DOUBLE AS wait_s
FROM job_run r LEFT JOIN job j ON j.cluster = r.cluster AND j.job_id = r.job_id
WHERE r.gpus > 0 AND ($3::VARCHAR IS NULL OR r.cluster = $3)
GROUP BY r.cluster, r.job_id
HAVING min(coalesce(r.eligible_at, r.submit_at)) < $2
  AND coalesce(max(coalesce(r.end_at, r.last_known_at)), $2) > $1
ORDER BY r.cluster, r.job_id
