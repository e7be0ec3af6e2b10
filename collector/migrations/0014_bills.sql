-- Memory that nobody holds, labels of holders, and statements as they were issued. Times are UTC.

-- One row = memory of a board's or pool's unheld GPU time that nobody touched in [since, until) of an hour, kept so
-- that the overlay vram_idle outlives its samples. gpu_uuid NULL = boards of the pool without rows of their own.
CREATE TABLE idle_memory_hour (
  cluster VARCHAR NOT NULL, hour TIMESTAMP NOT NULL, since TIMESTAMP NOT NULL, until TIMESTAMP NOT NULL,
  node VARCHAR NOT NULL, gpu_model VARCHAR NOT NULL, gpu_uuid VARCHAR, untouched_us BIGINT NOT NULL);

-- What a holder's jobs are labelled with: key=value, sorted, joined by line breaks. NULL = none that is mapped.
ALTER TABLE ledger_holder ADD COLUMN labels VARCHAR;

-- One row = a statement as it was issued, never changed: version 1 first; what comes later is the next version.
-- team NULL = the platform's. document = its JSON, from which every form is made again, byte for byte.
CREATE TABLE statement_issue (
  issue_id VARCHAR NOT NULL, month DATE NOT NULL, time_zone VARCHAR NOT NULL, cluster VARCHAR, team VARCHAR,
  currency VARCHAR NOT NULL, version INTEGER NOT NULL, statement_id VARCHAR NOT NULL, total DECIMAL(18, 6) NOT NULL,
  price_book VARCHAR, org_version VARCHAR NOT NULL, demand_profiles VARCHAR[] NOT NULL, rules_version VARCHAR NOT NULL,
  document VARCHAR NOT NULL, sha256 VARCHAR NOT NULL, issued_by VARCHAR NOT NULL, issued_at TIMESTAMP NOT NULL);

-- One row = one line of it: what is charged (class, overhead, adjustment) and what is told (model, user, stranded,
-- waited, energy). gpu_hours and amount NULL = the line has none.
CREATE TABLE statement_line (
  issue_id VARCHAR NOT NULL, place INTEGER NOT NULL, section VARCHAR NOT NULL, item VARCHAR NOT NULL,
  gpu_hours DECIMAL(28, 9), amount DECIMAL(18, 6), charged BOOLEAN NOT NULL, number VARCHAR NOT NULL,
  detail VARCHAR NOT NULL);
