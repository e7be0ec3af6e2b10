-- What stands beside the ledger's rows, written with them hour by hour. Times are UTC.

-- Held or installed GPU time whose memory nobody touched; an overlay like the others.
ALTER TABLE ledger_hour ADD COLUMN vram_idle BIGINT DEFAULT 0;

-- What rebuilds the overlays suspect_hang and vram_idle of an hour once raw samples are gone.
ALTER TABLE activity_hour ADD COLUMN hang_us BIGINT DEFAULT 0;
ALTER TABLE activity_hour ADD COLUMN untouched_ppm_us BIGINT DEFAULT 0;

-- One row = all rows of ledger_hour of one holder (NULL: not held), model, price, slice and posting of a cluster,
-- added up; its columns are theirs. pool_key = the lowest of the pools, which has their cluster and model.
CREATE TABLE ledger_holder_hour AS SELECT * FROM ledger_hour LIMIT 0;
INSERT INTO ledger_holder_hour SELECT hour, since, until, lowest, NULL, NULL, holder_key, price_key, posting,
  CAST(sum(used) AS BIGINT), CAST(sum(lost) AS BIGINT), CAST(sum(allocated_idle) AS BIGINT),
  CAST(sum(allocated_unmeasured) AS BIGINT), CAST(sum(failed_held) AS BIGINT), CAST(sum(unattributed) AS BIGINT),
  CAST(sum(failed) AS BIGINT), CAST(sum(drained) AS BIGINT), CAST(sum(unknown) AS BIGINT),
  CAST(sum(reserved) AS BIGINT), CAST(sum(gang_wait) AS BIGINT), CAST(sum(stranded_cpu) AS BIGINT),
  CAST(sum(stranded_mem) AS BIGINT), CAST(sum(stranded_shape) AS BIGINT), CAST(sum(stranded_topology) AS BIGINT),
  CAST(sum(policy_blocked) AS BIGINT), CAST(sum(free) AS BIGINT), CAST(sum(possibly_lost) AS BIGINT),
  CAST(sum(suspect_hang) AS BIGINT), CAST(sum(fillable) AS BIGINT), CAST(sum(stranded_low) AS BIGINT),
  CAST(sum(stranded_high) AS BIGINT), CAST(sum(contested) AS BIGINT), CAST(sum(vram_idle) AS BIGINT)
FROM ledger_hour JOIN
  (SELECT pool_key, min(pool_key) OVER (PARTITION BY cluster, gpu_model) AS lowest FROM ledger_pool) USING (pool_key)
GROUP BY hour, since, until, lowest, holder_key, price_key, posting ORDER BY hour;

-- One row = all rows of ledger_cause of one holder and the like, in the same way.
CREATE TABLE ledger_holder_cause AS SELECT * FROM ledger_cause LIMIT 0;
INSERT INTO ledger_holder_cause BY NAME
SELECT hour, since, until, lowest AS pool_key, price_key, posting, class, role, rule, holder_key,
  CAST(sum(gpu_us) AS BIGINT) AS gpu_us
FROM ledger_cause JOIN
  (SELECT pool_key, min(pool_key) OVER (PARTITION BY cluster, gpu_model) AS lowest FROM ledger_pool) USING (pool_key)
GROUP BY hour, since, until, lowest, price_key, posting, class, role, rule, holder_key ORDER BY hour;

-- One row = what the ledger rests on where it says that a run's work is lost (class lost or possibly_lost: mark,
-- declared, learnt, none), or suspects that the run hangs (class suspect_hang: idle_floor, no_process, started_apart).
CREATE TABLE ledger_evidence (
  cluster VARCHAR NOT NULL, hour TIMESTAMP NOT NULL, run_id VARCHAR NOT NULL, class VARCHAR NOT NULL,
  evidence VARCHAR NOT NULL, gpu_us BIGINT NOT NULL, text VARCHAR NOT NULL);

-- One row = jobs of this class (account and name, NULL = any) write a checkpoint every so many seconds, from
-- effective_from until the next row of the same class.
CREATE TABLE checkpoint_interval (
  cluster VARCHAR, account VARCHAR, job_name VARCHAR, interval_s DOUBLE NOT NULL,
  effective_from TIMESTAMP NOT NULL, source VARCHAR NOT NULL);

-- One row = one shape of a task distribution: the typical jobs that fragmentation is measured against.
CREATE TABLE task_distribution (
  distribution VARCHAR NOT NULL, place INTEGER NOT NULL, cpu_milli BIGINT NOT NULL, gpus INTEGER NOT NULL,
  gpu_milli INTEGER NOT NULL, gpu_models VARCHAR[], jobs BIGINT NOT NULL);

-- One row = fragmentation F of one node over one hour against a task distribution; amounts are GPU time in
-- micro-GPU-seconds: free = neither held nor out of order, fragmented = expected part of it that a task cannot use.
CREATE TABLE fragmentation_hour (
  cluster VARCHAR NOT NULL, hour TIMESTAMP NOT NULL, node VARCHAR NOT NULL, rack VARCHAR,
  distribution VARCHAR NOT NULL, free_us BIGINT NOT NULL, fragmented_us BIGINT NOT NULL);
