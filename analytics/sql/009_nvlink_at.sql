-- One row = one NVLink of one GPU that stood on its node at $1, or the GPU itself where it has none (link NULL).
SELECT s.cluster, s.node, s.gpu_uuid, s.gpu_index, s.pci_bus_id, n.link, n.remote_type, n.remote_pci_bus_id,
  f.fabric_uuid, f.clique_id, f.state AS fabric_state, f.health_mask
FROM device_seen s
LEFT JOIN nvlink n ON n.cluster = s.cluster AND n.node = s.node AND n.gpu_uuid = s.gpu_uuid
  AND n.valid_from <= $1 AND (n.valid_to IS NULL OR n.valid_to > $1)
LEFT JOIN gpu_fabric f ON f.cluster = s.cluster AND f.node = s.node AND f.gpu_uuid = s.gpu_uuid
  AND f.valid_from <= $1 AND (f.valid_to IS NULL OR f.valid_to > $1)
WHERE s.valid_from <= $1 AND (s.valid_to IS NULL OR s.valid_to > $1) AND ($2::VARCHAR IS NULL OR s.cluster = $2)
ORDER BY s.cluster, s.node, s.gpu_index, s.gpu_uuid, n.link
