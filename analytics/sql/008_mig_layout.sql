-- One row = one MIG instance that stood at $1, from the left of its board; mem_total_mib is that of the board.
SELECT m.cluster, m.node, m.gpu_uuid, m.mig_uuid, m.profile, m.gpu_instance_id, m.gpu_slices, m.mem_mib, m.placement_start,
  coalesce(d.raw_name, d.gpu_model) AS gpu_model, d.mem_total_mib
FROM mig_instance m LEFT JOIN device d ON d.cluster = m.cluster AND d.gpu_uuid = m.gpu_uuid
WHERE m.valid_from <= $1 AND (m.valid_to IS NULL OR m.valid_to > $1) AND ($2::VARCHAR IS NULL OR m.cluster = $2)
ORDER BY m.cluster, m.node, m.gpu_uuid, m.placement_start NULLS LAST, m.gpu_instance_id, m.mig_uuid
