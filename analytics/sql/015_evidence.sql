-- One row = one run of the window [$1, $2) and what its lost or suspected GPU time rests on; the latest text.
SELECT e.cluster, e.run_id, any_value(r.job_id) AS job, any_value(r.user_name) AS "user",
  any_value(r.account) AS account, e.class, e.evidence, CAST(sum(e.gpu_us) AS BIGINT) AS gpu_us,
  min(e.hour) AS since, max(e.hour) + INTERVAL 1 HOUR AS until, arg_max(e.text, e.hour) AS text
FROM ledger_evidence e
LEFT JOIN (SELECT DISTINCT ON (cluster, run_id) cluster, run_id, job_id, user_name, account FROM job_run
  ORDER BY ALL) r
  ON r.cluster = e.cluster AND r.run_id = e.run_id
WHERE e.hour >= time_bucket(INTERVAL 1 HOUR, $1::TIMESTAMP) AND e.hour < $2
  AND ($3::VARCHAR IS NULL OR e.cluster = $3) AND ($4::VARCHAR IS NULL OR r.job_id = $4)
GROUP BY e.cluster, e.run_id, e.class, e.evidence
ORDER BY gpu_us DESC, e.cluster, e.run_id, e.class, e.evidence
