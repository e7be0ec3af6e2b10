-- Prices, mappings, settings and the ledger. Times are UTC. gpu_us = micro-GPU-seconds (one GPU for one
-- microsecond), always an integer. Keys (pool, run, holder, price) are small integers handed out once per file.

-- One row = a price per GPU-hour in force over [effective_from, effective_to). Rows are never changed: a
-- corrected row retires the old one (retired_at) and past ledgers keep naming it.
CREATE TABLE price (
  price_key INTEGER NOT NULL, price_id VARCHAR NOT NULL,      -- price_id = hash of the row's content
  cluster VARCHAR, gpu_model VARCHAR NOT NULL, purchase_type VARCHAR NOT NULL, unit VARCHAR NOT NULL,
  amount DECIMAL(18, 6) NOT NULL, currency VARCHAR NOT NULL,
  kind VARCHAR NOT NULL,                                      -- list | contracted | amortized | internal
  free BOOLEAN NOT NULL, effective_from TIMESTAMP NOT NULL, effective_to TIMESTAMP,
  source VARCHAR NOT NULL, retrieved_on DATE, loaded_at TIMESTAMP NOT NULL, retired_at TIMESTAMP);

-- One row = over this day and until the next row, 1 from_currency = rate to_currency.
CREATE TABLE currency_rate (
  from_currency VARCHAR NOT NULL, to_currency VARCHAR NOT NULL, rate DECIMAL(18, 9) NOT NULL,
  effective_from TIMESTAMP NOT NULL, source VARCHAR NOT NULL);

-- One row = a raw GPU name of this site and the price-book model it means; wins over the shipped table.
CREATE TABLE gpu_model_alias (raw_name VARCHAR NOT NULL, gpu_model VARCHAR NOT NULL, source VARCHAR NOT NULL);

-- One row = who owns what a key names over [valid_from, valid_to); rows of one key at one time are a split
-- whose ratio_ppm (parts per million) add to 1,000,000. key_value is NFC-normalised and case-folded.
CREATE TABLE org_map (
  cluster VARCHAR, key_kind VARCHAR NOT NULL,                 -- account | user | project | label | partition
  key_value VARCHAR NOT NULL, raw_value VARCHAR NOT NULL,
  project VARCHAR, team VARCHAR NOT NULL, cost_center VARCHAR, ratio_ppm INTEGER NOT NULL,
  valid_from TIMESTAMP NOT NULL, valid_to TIMESTAMP, source VARCHAR NOT NULL);

-- One row = who pays for a class over [effective_from, next row of that class).
CREATE TABLE who_pays (
  class VARCHAR NOT NULL, payer VARCHAR NOT NULL,             -- holder | causer | waiter | platform
  effective_from TIMESTAMP NOT NULL, source VARCHAR NOT NULL);

-- One row = a setting of the ledger in force from effective_from until the next row of the same key;
-- cluster NULL = every cluster without a row of its own.
CREATE TABLE ledger_setting (
  cluster VARCHAR, key VARCHAR NOT NULL, value VARCHAR NOT NULL, effective_from TIMESTAMP NOT NULL, source VARCHAR NOT NULL);

-- One row = money added to or taken from a team by a person: credit, dispute, manual.
CREATE TABLE adjustment (
  adjustment_id VARCHAR NOT NULL, ts TIMESTAMP NOT NULL, month DATE NOT NULL, cluster VARCHAR, team VARCHAR,
  kind VARCHAR NOT NULL, amount DECIMAL(18, 6) NOT NULL, currency VARCHAR NOT NULL, reason VARCHAR NOT NULL,
  author VARCHAR NOT NULL, approved_by VARCHAR, approved_at TIMESTAMP);

-- One row = the installed GPUs of one model on one node, the ledger's unit.
CREATE TABLE ledger_pool (
  pool_key INTEGER NOT NULL, cluster VARCHAR NOT NULL, node VARCHAR NOT NULL, gpu_model VARCHAR NOT NULL);

-- One row = whom a run belongs to; many runs share it.
CREATE TABLE ledger_holder (
  holder_key INTEGER NOT NULL, cluster VARCHAR NOT NULL, user_name VARCHAR, account VARCHAR, project VARCHAR,
  queue VARCHAR, qos VARCHAR);

-- One row = one run that the ledger names.
CREATE TABLE ledger_run (
  run_key INTEGER NOT NULL, cluster VARCHAR NOT NULL, run_id VARCHAR NOT NULL, job_id VARCHAR NOT NULL);

-- One row = a demand profile that decided rows: CPU and memory per GPU of the jobs that came before.
-- NULL = no history, the node's own total per GPU is used.
CREATE TABLE demand_profile (
  profile_hash VARCHAR NOT NULL, cluster VARCHAR NOT NULL, day DATE NOT NULL, jobs BIGINT NOT NULL,
  quantile DECIMAL(5, 4) NOT NULL, cpu_milli_per_gpu BIGINT, mem_mib_per_gpu BIGINT,
  low_cpu_milli_per_gpu BIGINT, low_mem_mib_per_gpu BIGINT, high_cpu_milli_per_gpu BIGINT, high_mem_mib_per_gpu BIGINT);

-- One row = what one run (or nobody: run_key NULL) did with one pool, or one named GPU of it, over
-- [since, until) inside one hour at one price. The class columns add up to the GPU time of the row;
-- over all rows of a pool they add up to what is installed. Columns after overlays are measures beside them.
CREATE TABLE ledger_hour (
  hour TIMESTAMP NOT NULL, since TIMESTAMP NOT NULL, until TIMESTAMP NOT NULL,
  pool_key INTEGER NOT NULL, gpu_uuid VARCHAR, run_key INTEGER, holder_key INTEGER, price_key INTEGER,
  posting INTEGER NOT NULL,            -- 0 = as first built, n = the nth correction of a closed day
  used BIGINT NOT NULL, lost BIGINT NOT NULL, allocated_idle BIGINT NOT NULL, allocated_unmeasured BIGINT NOT NULL,
  failed_held BIGINT NOT NULL, unattributed BIGINT NOT NULL,
  failed BIGINT NOT NULL, drained BIGINT NOT NULL, unknown BIGINT NOT NULL, reserved BIGINT NOT NULL,
  gang_wait BIGINT NOT NULL, stranded_cpu BIGINT NOT NULL, stranded_mem BIGINT NOT NULL,
  stranded_shape BIGINT NOT NULL, stranded_topology BIGINT NOT NULL, policy_blocked BIGINT NOT NULL, free BIGINT NOT NULL,
  -- overlays
  possibly_lost BIGINT NOT NULL, suspect_hang BIGINT NOT NULL, fillable BIGINT NOT NULL,
  stranded_low BIGINT NOT NULL, stranded_high BIGINT NOT NULL,   -- stranded_cpu + stranded_mem at the low and high quantile
  contested BIGINT NOT NULL);                                    -- measured time that a second holder claims too

-- One row = a part of a row's class and the run that caused it, waited for it, or preempted; modelled by `rule`.
CREATE TABLE ledger_cause (
  hour TIMESTAMP NOT NULL, since TIMESTAMP NOT NULL, until TIMESTAMP NOT NULL, pool_key INTEGER NOT NULL, price_key INTEGER,
  posting INTEGER NOT NULL, class VARCHAR NOT NULL, role VARCHAR NOT NULL,   -- causer | waiter
  rule VARCHAR NOT NULL, run_key INTEGER, holder_key INTEGER, gpu_us BIGINT NOT NULL,
  release_cpu_milli BIGINT, release_mem_mib BIGINT);   -- the most that had to be released to free them all

-- One row = facts that contradict each other over [since, until), and the rule that decided.
CREATE TABLE ledger_conflict (
  cluster VARCHAR NOT NULL, hour TIMESTAMP NOT NULL, since TIMESTAMP NOT NULL, until TIMESTAMP NOT NULL,
  node VARCHAR NOT NULL, gpu_uuid VARCHAR, run_id VARCHAR, kind VARCHAR NOT NULL, rule VARCHAR NOT NULL,
  gpu_us BIGINT NOT NULL, text VARCHAR NOT NULL);

-- One row = this hour of this cluster stands in the ledger, made from facts with this fingerprint.
CREATE TABLE ledger_build (
  cluster VARCHAR NOT NULL, hour TIMESTAMP NOT NULL, facts_hash VARCHAR NOT NULL, profile_hash VARCHAR NOT NULL,
  rules_version VARCHAR NOT NULL, activity_metric VARCHAR NOT NULL, installed_us BIGINT NOT NULL, rows BIGINT NOT NULL);

-- One row = a closed day and what it was closed with.
CREATE TABLE closed_day (
  cluster VARCHAR NOT NULL, day DATE NOT NULL, closed_at TIMESTAMP NOT NULL, closed_by VARCHAR NOT NULL,
  coverage_ratio DECIMAL(9, 8) NOT NULL, ledger_hash VARCHAR NOT NULL, price_hash VARCHAR NOT NULL,
  org_hash VARCHAR NOT NULL, rules_version VARCHAR NOT NULL, reopened_at TIMESTAMP);
