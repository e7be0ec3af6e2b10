-- One row = one rack over one hour of [$1, $2): bytes a second through the fast network of its nodes together, and the
-- most of one node. Counters only grow; where one ends below its highest reading it was reset, and the node is left out.
WITH node_hour AS (
  SELECT cluster, node, date_trunc('hour', ts) AS hour,
    CASE WHEN arg_max(net_rx_bytes, ts) = max(net_rx_bytes) AND arg_max(net_tx_bytes, ts) = max(net_tx_bytes)
      THEN max(net_rx_bytes) - min(net_rx_bytes) + max(net_tx_bytes) - min(net_tx_bytes) END AS bytes,
    epoch(max(ts) - min(ts)) AS seconds
  FROM host_sample
  WHERE ts >= $1 AND ts < $2 AND run_id IS NULL AND net_rx_bytes IS NOT NULL AND net_tx_bytes IS NOT NULL
    AND ($3::VARCHAR IS NULL OR cluster = $3)
  GROUP BY cluster, node, date_trunc('hour', ts)
  HAVING max(ts) > min(ts)),
place AS (
  SELECT cluster, node, arg_max(coalesce(rack, leaf), valid_from) AS rack FROM node
  WHERE valid_from < $2 AND (valid_to IS NULL OR valid_to > $1) GROUP BY cluster, node)
SELECT h.cluster, p.rack, h.hour, sum(h.bytes / h.seconds) AS bytes_per_s, count(*)::INTEGER AS nodes,
  arg_max(h.node, h.bytes / h.seconds) AS busiest_node, max(h.bytes / h.seconds) AS busiest_bytes_per_s
FROM node_hour h LEFT JOIN place p ON p.cluster = h.cluster AND p.node = h.node
WHERE h.bytes IS NOT NULL
GROUP BY h.cluster, p.rack, h.hour
ORDER BY h.cluster, p.rack NULLS LAST, h.hour
