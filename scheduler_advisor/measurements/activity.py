"""How held GPU time is distributed over activity: behind a mean of 60% can stand two worlds."""

from __future__ import annotations

from dataclasses import dataclass

from collector.store import Work
from scheduler_advisor.window import Window

EDGES = (0.01, 0.25, 0.5, 0.75, 0.9)

# One row = the held and measured GPU time of runs whose activity in an hour fell in one bucket.
_SHARES = """
WITH hourly AS (
  SELECT h.hour, h.run_key, sum(h.used + h.lost)::BIGINT AS used,
    sum(h.used + h.lost + h.allocated_idle)::BIGINT AS held
  FROM ledger_hour h JOIN ledger_pool p ON p.pool_key = h.pool_key
  WHERE h.run_key IS NOT NULL AND h.hour >= $1 AND h.hour < $2
    AND ($3::VARCHAR IS NULL OR p.cluster = $3)
  GROUP BY h.hour, h.run_key HAVING held > 0)
SELECT len(list_filter($4::DOUBLE[], lambda e: used / held > e))::INTEGER AS bucket,
  sum(held)::BIGINT AS micro
FROM hourly GROUP BY bucket ORDER BY bucket
"""


@dataclass(frozen=True, slots=True)
class ActivityShare:
    """GPU-hours held in run-hours with an activity over ``low`` and up to ``high``."""

    low: float
    high: float
    gpu_hours: float


def activity_distribution(
    work: Work, window: Window, cluster: str | None = None
) -> list[ActivityShare]:
    """Every bucket, empty ones included, from idle to fully busy."""
    rows = work.rows(_SHARES, [window.since, window.until, cluster, list(EDGES)])
    found = {row["bucket"]: row["micro"] / 3.6e9 for row in rows}
    lows, highs = (0.0, *EDGES), (*EDGES, 1.0)
    return [
        ActivityShare(low, high, found.get(place, 0.0))
        for place, (low, high) in enumerate(zip(lows, highs, strict=True))
    ]
