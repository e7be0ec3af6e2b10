-- One row = a GPU's membership of an NVLink domain over [valid_from, valid_to): GPUs of the same
-- (fabric_uuid, clique_id) reach each other, also across nodes. state: not_started in_progress completed.
CREATE TABLE gpu_fabric (
  cluster VARCHAR NOT NULL, node VARCHAR NOT NULL, gpu_uuid VARCHAR NOT NULL, fabric_uuid VARCHAR NOT NULL,
  clique_id INTEGER NOT NULL, state VARCHAR NOT NULL, health_mask BIGINT,
  valid_from TIMESTAMP NOT NULL, valid_to TIMESTAMP, source VARCHAR NOT NULL);
