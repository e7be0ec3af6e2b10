-- What stands beside the ledger's rows, written with them hour by hour. Times are UTC.

-- Held or installed GPU time whose memory nobody touched; an overlay like the others.
ALTER TABLE ledger_hour ADD COLUMN vram_idle BIGINT DEFAULT 0;

-- What rebuilds the overlays suspect_hang and vram_idle of an hour once raw samples are gone.
ALTER TABLE activity_hour ADD COLUMN hang_us BIGINT DEFAULT 0;
ALTER TABLE activity_hour ADD COLUMN untouched_ppm_us BIGINT DEFAULT 0;

-- One row = all rows of ledger_hour of one holder (NULL: not held), model, price, slice and posting of a cluster,
-- added up; its columns are theirs. pool_key = the lowest of the pools, which has their cluster and model.
CREATE TABLE ledger_holder_hour AS SELECT * FROM ledger_hour LIMIT 0;

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
