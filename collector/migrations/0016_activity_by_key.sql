-- Activity that outlives its samples names pools and runs by their keys, as the ledger's own rows do: names took
-- half of what a day's roll-up costs to write.
CREATE TABLE activity_by_key (
  hour TIMESTAMP NOT NULL, pool_key INTEGER NOT NULL, gpu_uuid VARCHAR, mig_uuid VARCHAR, run_key INTEGER NOT NULL,
  since TIMESTAMP NOT NULL, until TIMESTAMP NOT NULL, measured_us BIGINT NOT NULL, active_ppm_us BIGINT NOT NULL,
  hang_us BIGINT DEFAULT 0, untouched_ppm_us BIGINT DEFAULT 0);
INSERT INTO activity_by_key
SELECT hour, pool_key, gpu_uuid, mig_uuid, run_key, since, until, measured_us, active_ppm_us, hang_us, untouched_ppm_us
FROM activity_hour JOIN ledger_pool USING (cluster, node, gpu_model) JOIN ledger_run USING (cluster, run_id)
ORDER BY hour;
DROP TABLE activity_hour;
ALTER TABLE activity_by_key RENAME TO activity_hour;
