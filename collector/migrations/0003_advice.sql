-- What the advisor said, what people made of it, and what was sent where. All times are UTC.

-- One row = one report that was made over [since, until); body is the report as JSON.
CREATE TABLE advice_report (
  report_id VARCHAR NOT NULL, cluster VARCHAR, ts TIMESTAMP NOT NULL, since TIMESTAMP NOT NULL,
  until TIMESTAMP NOT NULL, time_zone VARCHAR NOT NULL, currency VARCHAR, coverage_ratio DOUBLE,
  price_version VARCHAR, goals_version VARCHAR NOT NULL, body VARCHAR NOT NULL);

-- One row = one recommendation as one report stated it; amounts are per week, NULL = not priced.
CREATE TABLE recommendation (
  report_id VARCHAR NOT NULL, recommendation_id VARCHAR NOT NULL, kind VARCHAR NOT NULL, cluster VARCHAR,
  subject VARCHAR NOT NULL, owner VARCHAR, rank INTEGER NOT NULL, gpu_hours DOUBLE NOT NULL, cost DECIMAL(38, 6),
  cost_low DECIMAL(38, 6), cost_high DECIMAL(38, 6), currency VARCHAR, basis VARCHAR NOT NULL,
  exclusive_group VARCHAR, expires_at TIMESTAMP NOT NULL, body VARCHAR NOT NULL);

-- One row = the part of a recommendation's amount that comes from one run, node or pool on one UTC day.
-- amount: saving = per week, adds up to the saving that the report states; current = what it cost in the window.
CREATE TABLE recommendation_part (
  report_id VARCHAR NOT NULL, recommendation_id VARCHAR NOT NULL, amount VARCHAR NOT NULL, claim VARCHAR NOT NULL, cluster VARCHAR,
  run_id VARCHAR, node VARCHAR, gpu_model VARCHAR, day DATE NOT NULL, micro_gpu_s BIGINT NOT NULL,
  cost DECIMAL(38, 6), cash BOOLEAN NOT NULL);

-- One row = somebody moved a recommendation to a state; the newest row counts. No row = new.
CREATE TABLE recommendation_state (
  recommendation_id VARCHAR NOT NULL, ts TIMESTAMP NOT NULL, state VARCHAR NOT NULL, -- accepted | snoozed | dismissed | applied | new
  actor VARCHAR NOT NULL, reason VARCHAR, until TIMESTAMP);

-- One row = one attempt to hand a report to a receiver. receiver is a name, never an address with a secret.
CREATE TABLE delivery (
  report_id VARCHAR NOT NULL, ts TIMESTAMP NOT NULL, channel VARCHAR NOT NULL, receiver VARCHAR NOT NULL,
  dedupe_key VARCHAR NOT NULL, attempt INTEGER NOT NULL, delivered BOOLEAN NOT NULL, error VARCHAR);

-- One row = GPUs that a group of accounts may use over [valid_from, valid_to); from a quota-aware scheduler.
CREATE TABLE quota (
  cluster VARCHAR NOT NULL, name VARCHAR NOT NULL, account VARCHAR, partition VARCHAR, gpu_model VARCHAR,
  gpus INTEGER NOT NULL, valid_from TIMESTAMP NOT NULL, valid_to TIMESTAMP, source VARCHAR NOT NULL);

-- One row = a setting of the scheduler as it was over [valid_from, valid_to).
CREATE TABLE scheduler_setting (
  cluster VARCHAR NOT NULL, scheduler VARCHAR NOT NULL, key VARCHAR NOT NULL, value VARCHAR NOT NULL,
  valid_from TIMESTAMP NOT NULL, valid_to TIMESTAMP, source VARCHAR NOT NULL);
