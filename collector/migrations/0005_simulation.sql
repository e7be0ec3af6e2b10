-- Replays that were run, so that none is run twice. Times are UTC.

-- One row = one replay of a workload on a cluster under a policy; result is its summary as JSON.
-- The same four hashes and seed always mean the same result, on every machine.
CREATE TABLE simulation (
  workload_hash VARCHAR NOT NULL, cluster_hash VARCHAR NOT NULL, policy_hash VARCHAR NOT NULL,
  engine_version VARCHAR NOT NULL, seed BIGINT NOT NULL, ts TIMESTAMP NOT NULL, result VARCHAR NOT NULL);
