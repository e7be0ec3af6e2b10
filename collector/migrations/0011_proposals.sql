-- Proposals that people saved from a what-if, and what advice and changes really brought. UTC.

-- One row = one candidate policy that somebody saved; result is what the replay said, as JSON.
CREATE TABLE proposal (
  proposal_id VARCHAR NOT NULL, cluster VARCHAR NOT NULL, ts TIMESTAMP NOT NULL, actor VARCHAR NOT NULL,
  name VARCHAR NOT NULL, since TIMESTAMP NOT NULL, until TIMESTAMP NOT NULL, policy VARCHAR NOT NULL,
  result VARCHAR NOT NULL);

-- One row = one judgement of one change: before and after, adjusted for load. kind is that of the advice,
-- or policy_change / purchase for changes that operators made by themselves. The newest row of a subject counts.
-- predicted_* NULL = nothing was predicted; realised and its bounds are per week in the unit named.
CREATE TABLE advice_outcome (
  subject_id VARCHAR NOT NULL, cluster VARCHAR, kind VARCHAR NOT NULL, ts TIMESTAMP NOT NULL,
  changed_at TIMESTAMP NOT NULL, what VARCHAR NOT NULL, unit VARCHAR NOT NULL,
  predicted DOUBLE, predicted_low DOUBLE, predicted_high DOUBLE,
  realised DOUBLE, realised_low DOUBLE, realised_high DOUBLE,
  load_before DOUBLE, load_after DOUBLE, verdict VARCHAR NOT NULL, detail VARCHAR NOT NULL);
