-- One row = a class of free GPU time that one job ($2 of cluster $1) caused or waited for, by rule, in GPU-hours.
SELECT c.class, c.role, c.rule, (sum(c.gpu_us)::BIGINT / 3.6e9)::DOUBLE AS gpu_hours
FROM ledger_cause c JOIN ledger_run r ON r.run_key = c.run_key
WHERE r.cluster = $1 AND r.job_id = $2
GROUP BY c.class, c.role, c.rule HAVING sum(c.gpu_us) <> 0
ORDER BY gpu_hours DESC, c.class, c.rule
