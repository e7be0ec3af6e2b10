-- One row = batches first to last of one start of an agent, without a gap, were taken in; each is
-- taken once. heard_at: when the newest of them came. row_count: their rows together. A batch a row
-- would be a hundred million rows in two weeks of ten thousand GPUs, looked through at every batch.
-- cluster NULL: taken in before clusters were kept.
CREATE TABLE ingest_range (
  cluster VARCHAR, node VARCHAR NOT NULL, agent_id VARCHAR NOT NULL, boot_id VARCHAR NOT NULL, first BIGINT NOT NULL,
  last BIGINT NOT NULL, heard_at TIMESTAMP NOT NULL, row_count BIGINT NOT NULL);

INSERT INTO ingest_range
SELECT NULL, node, agent_id, boot_id, min(sequence), max(sequence), max(ts), sum(row_count)::BIGINT
FROM (
  SELECT *, sequence - row_number() OVER (PARTITION BY node, agent_id, boot_id ORDER BY sequence) AS island
  FROM (SELECT DISTINCT ON (node, agent_id, boot_id, sequence) * FROM ingest_batch)
)
GROUP BY node, agent_id, boot_id, island;

DROP TABLE ingest_batch;
