-- Long work with its beginning and end, what is to be delivered until it has arrived, and personal notes. UTC.

-- One row = a long task reached a state: running, then done | failed | cancelled, or lost where the service
-- ended while it worked. The newest row of a task counts. error says why it failed.
CREATE TABLE task_run (
  run_id VARCHAR NOT NULL, kind VARCHAR NOT NULL, cluster VARCHAR, since TIMESTAMP NOT NULL, until TIMESTAMP NOT NULL,
  ts TIMESTAMP NOT NULL, state VARCHAR NOT NULL, error VARCHAR);

-- One row = something to hand to one receiver; its attempts are the rows of delivery with the same dedupe_key.
-- content holds no secret: addresses and passwords are read when it is sent. After expires_at it is not sent.
CREATE TABLE outbox (
  dedupe_key VARCHAR NOT NULL, report_id VARCHAR NOT NULL, ts TIMESTAMP NOT NULL, channel VARCHAR NOT NULL,
  receiver VARCHAR NOT NULL, content BLOB NOT NULL, expires_at TIMESTAMP NOT NULL);

-- One row = a personal note to the owner of waste, made at ts; with dry_run it was written down and not sent.
CREATE TABLE nudge (
  owner VARCHAR NOT NULL, ts TIMESTAMP NOT NULL, cluster VARCHAR, report_id VARCHAR NOT NULL,
  dedupe_key VARCHAR NOT NULL, recommendation_ids VARCHAR[] NOT NULL, language VARCHAR NOT NULL,
  subject VARCHAR NOT NULL, text VARCHAR NOT NULL, dry_run BOOLEAN NOT NULL);
