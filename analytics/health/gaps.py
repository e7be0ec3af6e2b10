"""Stretches of time in which a node's holders or activity were not known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from analytics.window import Window
from collector.store import Store

# An hour counts as a gap when more than half of the node's time that should be known is not.
_GAPS = """
WITH per_hour AS (
  SELECT cluster, node, hour,
         sum(unknown)::BIGINT AS unknown,
         sum(allocated_unmeasured)::BIGINT AS unmeasured,
         sum(used + lost + allocated_idle + allocated_unmeasured)::BIGINT AS held,
         sum(used + lost + allocated_idle + allocated_unmeasured + failed_held + unattributed
             + failed + drained + unknown + reserved + gang_wait + stranded_cpu + stranded_mem
             + stranded_shape + stranded_topology + policy_blocked + free)::BIGINT AS installed
  FROM ledger_hour JOIN ledger_pool USING (pool_key)
  WHERE since < $2 AND until > $1 AND ($3 IS NULL OR cluster = $3)
  GROUP BY ALL
), missing AS (
  SELECT cluster, node, hour, 'scheduler' AS kind, unknown AS gpu_us
  FROM per_hour WHERE unknown * 2 > installed
  UNION ALL
  SELECT cluster, node, hour, 'telemetry', unmeasured
  FROM per_hour WHERE unmeasured > 0 AND unmeasured * 2 > held
), islands AS (
  SELECT *, hour - INTERVAL 1 HOUR * row_number()
           OVER (PARTITION BY cluster, node, kind ORDER BY hour) AS island
  FROM missing
), per_node AS (
  SELECT cluster, node, kind, min(hour) AS since, max(hour) + INTERVAL 1 HOUR AS until,
         sum(gpu_us)::BIGINT AS gpu_us
  FROM islands GROUP BY cluster, node, kind, island
)
SELECT cluster, kind, since, until, list(node ORDER BY node) AS nodes, sum(gpu_us)::BIGINT AS gpu_us
FROM per_node GROUP BY cluster, kind, since, until
ORDER BY gpu_us DESC, cluster, since, kind LIMIT $4
"""


@dataclass(frozen=True, slots=True)
class Gap:
    """Whole hours in which most of the nodes' time was unknown; ``kind`` scheduler | telemetry."""

    cluster: str
    nodes: tuple[str, ...]
    kind: str
    since: datetime
    until: datetime
    gpu_hours: Decimal


def gaps(store: Store, window: Window, cluster: str | None = None, limit: int = 500) -> list[Gap]:
    """The gaps of the window, largest first."""
    rows = store.rows(_GAPS, [window.since, window.until, cluster, limit])
    return [
        Gap(
            cluster=row["cluster"],
            nodes=tuple(row["nodes"]),
            kind=row["kind"],
            since=row["since"],
            until=row["until"],
            gpu_hours=Decimal(row["gpu_us"]) / Decimal(3_600_000_000),
        )
        for row in rows
    ]
