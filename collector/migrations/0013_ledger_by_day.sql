-- The ledger's rows by holder once more, whole UTC days as one: what a report over a year sums over. Times are UTC.

-- One row = all rows of ledger_holder_hour of one UTC day, holder (NULL: not held), model, price and posting of a
-- cluster, added up; its columns are theirs. hour and since = the day's begin, until = the next day's.
CREATE TABLE ledger_holder_day AS SELECT * FROM ledger_holder_hour LIMIT 0;
INSERT INTO ledger_holder_day BY NAME
SELECT date_trunc('day', h.hour) AS hour, date_trunc('day', h.hour) AS since,
  date_trunc('day', h.hour) + INTERVAL 1 DAY AS until, pool_key, holder_key, price_key, posting,
  CAST(sum(used) AS BIGINT) AS used, CAST(sum(lost) AS BIGINT) AS lost,
  CAST(sum(allocated_idle) AS BIGINT) AS allocated_idle,
  CAST(sum(allocated_unmeasured) AS BIGINT) AS allocated_unmeasured,
  CAST(sum(failed_held) AS BIGINT) AS failed_held, CAST(sum(unattributed) AS BIGINT) AS unattributed,
  CAST(sum(failed) AS BIGINT) AS failed, CAST(sum(drained) AS BIGINT) AS drained,
  CAST(sum(unknown) AS BIGINT) AS unknown, CAST(sum(reserved) AS BIGINT) AS reserved,
  CAST(sum(gang_wait) AS BIGINT) AS gang_wait, CAST(sum(stranded_cpu) AS BIGINT) AS stranded_cpu,
  CAST(sum(stranded_mem) AS BIGINT) AS stranded_mem, CAST(sum(stranded_shape) AS BIGINT) AS stranded_shape,
  CAST(sum(stranded_topology) AS BIGINT) AS stranded_topology, CAST(sum(policy_blocked) AS BIGINT) AS policy_blocked,
  CAST(sum(free) AS BIGINT) AS free, CAST(sum(possibly_lost) AS BIGINT) AS possibly_lost,
  CAST(sum(suspect_hang) AS BIGINT) AS suspect_hang, CAST(sum(fillable) AS BIGINT) AS fillable,
  CAST(sum(stranded_low) AS BIGINT) AS stranded_low, CAST(sum(stranded_high) AS BIGINT) AS stranded_high,
  CAST(sum(contested) AS BIGINT) AS contested, CAST(sum(vram_idle) AS BIGINT) AS vram_idle
FROM ledger_holder_hour h GROUP BY ALL ORDER BY hour;

-- One row = all rows of ledger_holder_cause of one day, holder and the like, in the same way.
CREATE TABLE ledger_holder_day_cause AS SELECT * FROM ledger_holder_cause LIMIT 0;
INSERT INTO ledger_holder_day_cause BY NAME
SELECT date_trunc('day', h.hour) AS hour, date_trunc('day', h.hour) AS since,
  date_trunc('day', h.hour) + INTERVAL 1 DAY AS until, pool_key, price_key, posting, class, role, rule, holder_key,
  CAST(sum(gpu_us) AS BIGINT) AS gpu_us
FROM ledger_holder_cause h GROUP BY ALL ORDER BY hour;
