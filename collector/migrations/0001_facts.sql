-- Facts as they came in. All times are UTC. NULL = not measured; 0 = measured zero.
-- Hot tables (sample, host_sample, process_sample) carry no key or index; roll-ups remove duplicates by key.

-- One row = one thing to know about this file itself (kind = demo | site, created_at, ...).
CREATE TABLE store_info (key VARCHAR NOT NULL, value VARCHAR NOT NULL);

-- One row = a node's inventory over [valid_from, valid_to); valid_to NULL = still so.
-- A node holds one GPU model (a pool); a mixed node has one row per model.
-- cpus and mem_mib are the node's totals, repeated on each of its rows.
CREATE TABLE node (
  cluster VARCHAR NOT NULL, node VARCHAR NOT NULL, gpu_model VARCHAR, gpus INTEGER NOT NULL,
  cpus INTEGER, mem_mib BIGINT, partitions VARCHAR[], features VARCHAR[],
  rack VARCHAR, leaf VARCHAR, spine VARCHAR,
  owned BOOLEAN NOT NULL,              -- owned pools stay in the total while powered down; cloud nodes do not
  valid_from TIMESTAMP NOT NULL, valid_to TIMESTAMP, source VARCHAR NOT NULL);

-- One row = one physical GPU, for ever.
CREATE TABLE device (
  cluster VARCHAR NOT NULL, gpu_uuid VARCHAR NOT NULL, gpu_model VARCHAR, raw_name VARCHAR,
  mem_total_mib BIGINT, mem_reserved_mib BIGINT, first_seen_at TIMESTAMP NOT NULL, source VARCHAR NOT NULL);

-- One row = where a GPU sat and under which index over [valid_from, valid_to).
CREATE TABLE device_seen (
  cluster VARCHAR NOT NULL, node VARCHAR NOT NULL, gpu_uuid VARCHAR NOT NULL,
  gpu_index INTEGER, minor_number INTEGER, pci_bus_id VARCHAR, driver_version VARCHAR,
  valid_from TIMESTAMP NOT NULL, valid_to TIMESTAMP, source VARCHAR NOT NULL);

-- One row = one MIG instance over [valid_from, valid_to).
CREATE TABLE mig_instance (
  cluster VARCHAR NOT NULL, node VARCHAR NOT NULL, gpu_uuid VARCHAR NOT NULL, mig_uuid VARCHAR NOT NULL,
  profile VARCHAR, gpu_instance_id INTEGER, compute_instance_id INTEGER,
  gpu_slices INTEGER, mem_mib BIGINT, placement_start INTEGER,
  valid_from TIMESTAMP NOT NULL, valid_to TIMESTAMP, source VARCHAR NOT NULL);

-- One row = one NVLink of a GPU over [valid_from, valid_to).
CREATE TABLE nvlink (
  cluster VARCHAR NOT NULL, node VARCHAR NOT NULL, gpu_uuid VARCHAR NOT NULL, link INTEGER NOT NULL,
  remote_type VARCHAR, remote_pci_bus_id VARCHAR, version INTEGER,
  valid_from TIMESTAMP NOT NULL, valid_to TIMESTAMP, source VARCHAR NOT NULL);

-- One row = one GPU (or MIG instance) at one tick; it speaks for the time since that device's previous
-- sample, at most 2 x step_s. run_id = the run that held it at ingest (NULL = none known).
-- gpu_uuid NULL: the source names only the node; then gpu_index tells its devices apart.
CREATE TABLE sample (
  cluster VARCHAR NOT NULL, node VARCHAR NOT NULL, gpu_uuid VARCHAR, gpu_index INTEGER, mig_uuid VARCHAR,
  run_id VARCHAR, ts TIMESTAMP NOT NULL, step_s DOUBLE NOT NULL,
  util_ratio DOUBLE, mem_util_ratio DOUBLE, sm_active_ratio DOUBLE, tensor_active_ratio DOUBLE,
  dram_active_ratio DOUBLE, mem_used_mib DOUBLE, mem_total_mib DOUBLE,
  power_mw DOUBLE, energy_mj DOUBLE, temperature_c DOUBLE, sm_clock_mhz DOUBLE,
  nvlink_tx_bytes DOUBLE, nvlink_rx_bytes DOUBLE, pcie_tx_bytes DOUBLE, pcie_rx_bytes DOUBLE,
  clocks_event_reasons BIGINT, ecc_uncorrected BIGINT, processes INTEGER,
  status VARCHAR,                      -- NULL = all asked values came; else "name=reason,..."
  source VARCHAR NOT NULL);

-- One row = CPU, memory, pressure and network of a node (run_id NULL) or of one run's cgroup on it, at one tick.
CREATE TABLE host_sample (
  cluster VARCHAR NOT NULL, node VARCHAR NOT NULL, run_id VARCHAR, ts TIMESTAMP NOT NULL, step_s DOUBLE NOT NULL,
  cpu_used DOUBLE, cpus INTEGER, mem_used_mib DOUBLE, mem_total_mib DOUBLE,
  cpu_pressure_ratio DOUBLE, mem_pressure_ratio DOUBLE, io_pressure_ratio DOUBLE,
  net_rx_bytes DOUBLE, net_tx_bytes DOUBLE, source VARCHAR NOT NULL);

-- One row = one process on one GPU at one tick.
CREATE TABLE process_sample (
  cluster VARCHAR NOT NULL, node VARCHAR NOT NULL, gpu_uuid VARCHAR NOT NULL, mig_uuid VARCHAR,
  run_id VARCHAR, ts TIMESTAMP NOT NULL, pid BIGINT NOT NULL, started_at TIMESTAMP, user_name VARCHAR,
  kind VARCHAR, mem_used_mib DOUBLE, sm_util_ratio DOUBLE, source VARCHAR NOT NULL);

-- One row = one job as submitted (all its runs share it).
CREATE TABLE job (
  cluster VARCHAR NOT NULL, job_id VARCHAR NOT NULL, name VARCHAR, account VARCHAR, user_name VARCHAR,
  project VARCHAR, qos VARCHAR, partitions VARCHAR[], submit_at TIMESTAMP NOT NULL,
  array_job_id VARCHAR, array_task VARCHAR, het_job_id VARCHAR, het_component INTEGER,
  req_nodes INTEGER, req_gpus INTEGER, req_gpu_model VARCHAR, req_cpus INTEGER, req_mem_mib BIGINT,
  limit_s BIGINT, topology VARCHAR, labels VARCHAR, source VARCHAR NOT NULL);

-- One row = one run of a job (requeues kept). start_at NULL = pending or never started; end_at NULL = open.
CREATE TABLE job_run (
  cluster VARCHAR NOT NULL, run_id VARCHAR NOT NULL, job_id VARCHAR NOT NULL, attempt INTEGER NOT NULL,
  account VARCHAR, user_name VARCHAR, project VARCHAR, qos VARCHAR, partition VARCHAR,
  submit_at TIMESTAMP NOT NULL, eligible_at TIMESTAMP, start_at TIMESTAMP, end_at TIMESTAMP,
  state VARCHAR NOT NULL,              -- PENDING RUNNING COMPLETED FAILED CANCELLED TIMEOUT OUT_OF_MEMORY
                                       -- PREEMPTED NODE_FAIL REQUEUED SUSPENDED UNKNOWN
  state_raw VARCHAR, reason VARCHAR, exit_code VARCHAR, priority BIGINT,
  gpus INTEGER, cpus INTEGER, mem_mib BIGINT, nodes INTEGER, suspended_s BIGINT, limit_s BIGINT,
  last_known_at TIMESTAMP,             -- an open run is known to hold until here
  source VARCHAR NOT NULL);

-- One row = what one run holds on one node over [start_at, end_at): gpus whole devices of the node's pool
-- (gpu_uuid NULL), or the share share_num / share_den of one named GPU or MIG instance.
CREATE TABLE allocation (
  cluster VARCHAR NOT NULL, run_id VARCHAR NOT NULL, node VARCHAR NOT NULL, gpu_model VARCHAR,
  gpu_uuid VARCHAR, mig_uuid VARCHAR, gpus INTEGER NOT NULL, share_num INTEGER NOT NULL, share_den INTEGER NOT NULL,
  cpus INTEGER, mem_mib BIGINT, start_at TIMESTAMP NOT NULL, end_at TIMESTAMP, source VARCHAR NOT NULL);

-- One row = a node was in this state over [since, until); until NULL = still so. Times not covered are "up".
CREATE TABLE node_state (
  cluster VARCHAR NOT NULL, node VARCHAR NOT NULL, since TIMESTAMP NOT NULL, until TIMESTAMP,
  state VARCHAR NOT NULL,              -- down | failed | drained | maintenance | powered_down | rebooting
  state_raw VARCHAR, reason VARCHAR, user_name VARCHAR, source VARCHAR NOT NULL);

-- One row = gpus of a node kept for a reservation or node lease over [since, until).
CREATE TABLE reservation (
  cluster VARCHAR NOT NULL, name VARCHAR NOT NULL, node VARCHAR NOT NULL, gpus INTEGER,
  accounts VARCHAR[], since TIMESTAMP NOT NULL, until TIMESTAMP, source VARCHAR NOT NULL);

-- One row = one pending job as the scheduler showed it at one tick.
CREATE TABLE queue_snapshot (
  cluster VARCHAR NOT NULL, ts TIMESTAMP NOT NULL, job_id VARCHAR NOT NULL, partition VARCHAR, account VARCHAR,
  user_name VARCHAR, qos VARCHAR, priority BIGINT, reason VARCHAR, submit_at TIMESTAMP,
  nodes INTEGER, gpus INTEGER, gpus_per_node INTEGER, gpu_model VARCHAR, cpus INTEGER, mem_mib BIGINT,
  limit_s BIGINT, topology VARCHAR, source VARCHAR NOT NULL);

-- One row = something that happened: xid, gpu_lost, checkpoint_begin, checkpoint_end, restore_begin,
-- restore_end, policy_change, note.
CREATE TABLE event (
  cluster VARCHAR NOT NULL, ts TIMESTAMP NOT NULL, kind VARCHAR NOT NULL, node VARCHAR, gpu_uuid VARCHAR,
  job_id VARCHAR, run_id VARCHAR, code INTEGER, fatal BOOLEAN, text VARCHAR, source VARCHAR NOT NULL);

-- One row = facts of this kind (scheduler | telemetry) cover [since, until) of the cluster, or of one node.
-- Outside of every such row the facts are unknown.
CREATE TABLE fact_window (
  cluster VARCHAR NOT NULL, kind VARCHAR NOT NULL, node VARCHAR, since TIMESTAMP NOT NULL, until TIMESTAMP NOT NULL,
  source VARCHAR NOT NULL);

-- One row = one import that was taken in: what, when, how many rows were kept and dropped, and why.
CREATE TABLE import_log (
  import_id VARCHAR NOT NULL, cluster VARCHAR NOT NULL, source VARCHAR NOT NULL, ts TIMESTAMP NOT NULL,
  since TIMESTAMP, until TIMESTAMP, kept BIGINT NOT NULL, dropped BIGINT NOT NULL, remarks VARCHAR);

-- One row = one batch of an agent that was taken in; each is taken once.
CREATE TABLE ingest_batch (
  node VARCHAR NOT NULL, agent_id VARCHAR NOT NULL, boot_id VARCHAR NOT NULL, sequence BIGINT NOT NULL,
  ts TIMESTAMP NOT NULL, row_count BIGINT NOT NULL);

-- One row = a scheduled task has done its work up to this instant.
CREATE TABLE watermark (task VARCHAR NOT NULL, done_until TIMESTAMP NOT NULL, ts TIMESTAMP NOT NULL);

-- One row = somebody changed a price, a mapping, a budget, a setting or an adjustment.
CREATE TABLE audit (
  ts TIMESTAMP NOT NULL, actor VARCHAR NOT NULL, action VARCHAR NOT NULL, subject VARCHAR NOT NULL,
  before_value VARCHAR, after_value VARCHAR, reason VARCHAR);
