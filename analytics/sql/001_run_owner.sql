-- One row = one run that was asked for ($2), with the job and the people it belongs to.
SELECT cluster, run_id, job_id, user_name, account
FROM job_run
WHERE ($1::VARCHAR IS NULL OR cluster = $1) AND list_contains($2::VARCHAR[], run_id)
ORDER BY cluster, run_id
