-- Money beside the ledger: decisions on adjustments, corrected rates, invoices to reconcile with, commitments,
-- overhead, energy and carbon. Rows that say what something costs are never changed: a corrected one retires the old.

ALTER TABLE adjustment ADD COLUMN rejected_by VARCHAR;
ALTER TABLE adjustment ADD COLUMN rejected_at TIMESTAMP;
ALTER TABLE adjustment ADD COLUMN decision_reason VARCHAR;

ALTER TABLE currency_rate ADD COLUMN loaded_at TIMESTAMP;
ALTER TABLE currency_rate ADD COLUMN retired_at TIMESTAMP;

-- One row = what somebody outside says that a month costs.
CREATE TABLE invoice (
  invoice_id VARCHAR NOT NULL, month DATE NOT NULL, cluster VARCHAR,
  kind VARCHAR NOT NULL,                                      -- invoice | asset_register
  source VARCHAR NOT NULL, amount DECIMAL(18, 6) NOT NULL, currency VARCHAR NOT NULL, note VARCHAR,
  entered_by VARCHAR NOT NULL, entered_at TIMESTAMP NOT NULL, retired_at TIMESTAMP, retired_by VARCHAR);

-- One row = one line of it; gpu_model NULL = no GPU time (network, support, tax). [since, until) is what the line
-- bills for, NULL = the month.
CREATE TABLE invoice_line (
  invoice_id VARCHAR NOT NULL, line INTEGER NOT NULL, description VARCHAR NOT NULL, gpu_model VARCHAR,
  gpu_hours DECIMAL(18, 6), amount DECIMAL(18, 6) NOT NULL, price_kind VARCHAR,
  since TIMESTAMP, until TIMESTAMP);

-- One row = GPUs that are paid for over [effective_from, effective_to) whether they are there or not;
-- amount per GPU-hour. cluster NULL = any cluster's.
CREATE TABLE commitment (
  commitment_id VARCHAR NOT NULL, cluster VARCHAR, gpu_model VARCHAR NOT NULL, gpus INTEGER NOT NULL,
  amount DECIMAL(18, 6) NOT NULL, currency VARCHAR NOT NULL,
  kind VARCHAR NOT NULL,                                      -- reserved | committed_use | capacity_block
  effective_from TIMESTAMP NOT NULL, effective_to TIMESTAMP NOT NULL,
  source VARCHAR NOT NULL, loaded_at TIMESTAMP NOT NULL, retired_at TIMESTAMP);

-- One row = cost of a month beside the GPU time (staff, storage, network, licences) and the rule it is distributed by.
CREATE TABLE overhead (
  overhead_id VARCHAR NOT NULL, month DATE NOT NULL, cluster VARCHAR, name VARCHAR NOT NULL,
  amount DECIMAL(18, 6) NOT NULL, currency VARCHAR NOT NULL,
  rule VARCHAR NOT NULL,                                      -- held | cost | even
  source VARCHAR NOT NULL, loaded_at TIMESTAMP NOT NULL, retired_at TIMESTAMP);

-- One row = grams of CO2 equivalent per kWh at the wall, and the building on top, from here until the next row.
CREATE TABLE carbon_intensity (
  cluster VARCHAR, grams_per_kwh DECIMAL(12, 4) NOT NULL, pue_ratio DECIMAL(6, 4) NOT NULL,
  effective_from TIMESTAMP NOT NULL, source VARCHAR NOT NULL, loaded_at TIMESTAMP NOT NULL, retired_at TIMESTAMP);

-- One row = energy of one board in one hour while one run (NULL: no single run) was on it, and how long was measured.
CREATE TABLE energy_hour (
  cluster VARCHAR NOT NULL, hour TIMESTAMP NOT NULL, node VARCHAR NOT NULL, gpu_uuid VARCHAR, gpu_index INTEGER,
  run_id VARCHAR, energy_mj BIGINT NOT NULL, measured_us BIGINT NOT NULL,
  method VARCHAR NOT NULL);                                   -- counter | power

-- One row = the energy of this hour was rolled up from so many samples.
CREATE TABLE energy_build (cluster VARCHAR NOT NULL, hour TIMESTAMP NOT NULL, samples BIGINT NOT NULL);
