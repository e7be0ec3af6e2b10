-- One row = fragmentation of one cluster, rack or node ($4) in one hour of [$1, $2): free GPU-hours and the part that a
-- typical task could not use, and the task distribution that it is measured against. F of a group = sum over its nodes.
SELECT cluster, CASE $4::VARCHAR WHEN 'node' THEN node WHEN 'rack' THEN coalesce(rack, 'unknown') ELSE cluster END AS name,
  hour, max(distribution) AS distribution, sum(free_us) / 3.6e9 AS free_gpu_hours,
  sum(fragmented_us) / 3.6e9 AS fragmented_gpu_hours
FROM fragmentation_hour
WHERE hour >= $1 AND hour < $2 AND ($3::VARCHAR IS NULL OR cluster = $3)
GROUP BY ALL ORDER BY ALL
