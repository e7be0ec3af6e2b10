-- One row = one GPU's bytes over all its NVLinks in [$1, $2) and the seconds between the first and last reading there.
-- The counters only grow; where one ends below its highest reading the driver was loaded anew, and nothing is known.
SELECT cluster, node, gpu_uuid,
  CASE WHEN arg_max(nvlink_tx_bytes, ts) = max(nvlink_tx_bytes) THEN max(nvlink_tx_bytes) - min(nvlink_tx_bytes) END
    AS tx_bytes,
  CASE WHEN arg_max(nvlink_rx_bytes, ts) = max(nvlink_rx_bytes) THEN max(nvlink_rx_bytes) - min(nvlink_rx_bytes) END
    AS rx_bytes,
  epoch(max(ts) - min(ts)) AS seconds
FROM sample
WHERE ts >= $1 AND ts < $2 AND gpu_uuid IS NOT NULL AND mig_uuid IS NULL AND nvlink_tx_bytes IS NOT NULL
  AND nvlink_rx_bytes IS NOT NULL AND ($3::VARCHAR IS NULL OR cluster = $3)
GROUP BY cluster, node, gpu_uuid
HAVING max(ts) > min(ts)
