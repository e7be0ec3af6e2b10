-- One row = one node with a fault, an uncorrected memory error or a slowed clock in [$1, $2).
-- Reasons to slow down that count: HW slowdown 0x8, SW thermal 0x20, HW thermal 0x40, HW power brake 0x80 (NVML).
WITH fault AS (
  SELECT cluster, node, count(*)::INTEGER AS faults, max(code) AS last_code, max(ts) AS last_fault_at
  FROM event WHERE kind IN ('xid', 'gpu_lost') AND node IS NOT NULL AND ts >= $1 AND ts < $2
  GROUP BY cluster, node),
measured AS (
  SELECT cluster, node, (sum(grown))::BIGINT AS ecc_uncorrected, sum(slow)::BIGINT AS slowed_samples,
    sum(known)::BIGINT AS throttle_samples, max(hottest) AS hottest_c
  FROM (
    SELECT cluster, node, max(ecc_uncorrected) - min(ecc_uncorrected) AS grown,
      count(*) FILTER (clocks_event_reasons & 232 <> 0) AS slow, count(clocks_event_reasons) AS known,
      max(temperature_c) AS hottest
    FROM sample WHERE ts >= $1 AND ts < $2 AND ($3::VARCHAR IS NULL OR cluster = $3)
    GROUP BY cluster, node, gpu_uuid, gpu_index)
  GROUP BY cluster, node)
SELECT coalesce(f.cluster, m.cluster) AS cluster, coalesce(f.node, m.node) AS node, coalesce(f.faults, 0)::INTEGER AS faults,
  f.last_code, f.last_fault_at, m.ecc_uncorrected, m.slowed_samples, m.throttle_samples, m.hottest_c
FROM fault f FULL JOIN measured m ON m.cluster = f.cluster AND m.node = f.node
WHERE ($3::VARCHAR IS NULL OR coalesce(f.cluster, m.cluster) = $3)
ORDER BY faults DESC, ecc_uncorrected DESC NULLS LAST, slowed_samples DESC NULLS LAST, cluster, node
