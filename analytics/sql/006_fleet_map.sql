-- One row = one node's pool over one step of $3 hours that begins at ts: GPU-hours per ledger class.
SELECT p.cluster, p.node, p.gpu_model,
  time_bucket(to_hours($3), h.hour, $1::TIMESTAMP) AS ts,
  (sum(h.used)::BIGINT / 3.6e9)::DOUBLE AS used,
  (sum(h.lost)::BIGINT / 3.6e9)::DOUBLE AS lost,
  (sum(h.allocated_idle)::BIGINT / 3.6e9)::DOUBLE AS allocated_idle,
  (sum(h.allocated_unmeasured)::BIGINT / 3.6e9)::DOUBLE AS allocated_unmeasured,
  (sum(h.failed_held)::BIGINT / 3.6e9)::DOUBLE AS failed_held,
  (sum(h.unattributed)::BIGINT / 3.6e9)::DOUBLE AS unattributed,
  (sum(h.failed)::BIGINT / 3.6e9)::DOUBLE AS failed,
  (sum(h.drained)::BIGINT / 3.6e9)::DOUBLE AS drained,
  (sum(h.unknown)::BIGINT / 3.6e9)::DOUBLE AS unknown,
  (sum(h.reserved)::BIGINT / 3.6e9)::DOUBLE AS reserved,
  (sum(h.gang_wait)::BIGINT / 3.6e9)::DOUBLE AS gang_wait,
  (sum(h.stranded_cpu)::BIGINT / 3.6e9)::DOUBLE AS stranded_cpu,
  (sum(h.stranded_mem)::BIGINT / 3.6e9)::DOUBLE AS stranded_mem,
  (sum(h.stranded_shape)::BIGINT / 3.6e9)::DOUBLE AS stranded_shape,
  (sum(h.stranded_topology)::BIGINT / 3.6e9)::DOUBLE AS stranded_topology,
  (sum(h.policy_blocked)::BIGINT / 3.6e9)::DOUBLE AS policy_blocked,
  (sum(h.free)::BIGINT / 3.6e9)::DOUBLE AS free
FROM ledger_hour h JOIN ledger_pool p ON p.pool_key = h.pool_key
WHERE h.hour >= date_trunc('hour', $1::TIMESTAMP) AND h.hour < $2 AND ($4::VARCHAR IS NULL OR p.cluster = $4)
GROUP BY p.cluster, p.node, p.gpu_model, time_bucket(to_hours($3), h.hour, $1::TIMESTAMP)
ORDER BY p.cluster, p.node, p.gpu_model, ts
