"""The idle end of a run: the hours after its last hour with work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from scheduler_advisor.advice.run import Run
from scheduler_advisor.advice.site import Site

# One row = a GPU run with its idle end. An hour is idle when at most $1 of its measured time was
# active; an unmeasured hour is neither busy nor idle. last_busy NULL = never busy in the window.
_TAILS = """
WITH hourly AS (
  SELECT cluster, run_id, hour, sum(used + lost)::BIGINT AS used,
    sum(allocated_idle)::BIGINT AS idle, sum(allocated_unmeasured)::BIGINT AS unmeasured
  FROM advice_cell WHERE run_id IS NOT NULL GROUP BY cluster, run_id, hour),
last AS (
  SELECT cluster, run_id, min(hour) AS first_hour, max(hour) AS last_hour,
    max(hour) FILTER (used > $1 * (used + idle)) AS last_busy
  FROM hourly GROUP BY cluster, run_id)
SELECT l.cluster, l.run_id, l.last_busy,
  coalesce(l.last_busy + INTERVAL 1 HOUR, l.first_hour) AS since,
  sum(h.idle)::BIGINT AS idle, sum(h.unmeasured)::BIGINT AS unmeasured,
  count(*) FILTER (h.idle > 0) AS measured_hours
FROM last l JOIN hourly h ON h.cluster = l.cluster AND h.run_id = l.run_id
  AND h.hour >= coalesce(l.last_busy + INTERVAL 1 HOUR, l.first_hour)
GROUP BY l.cluster, l.run_id, l.last_busy, l.first_hour
HAVING sum(h.idle) > 0
ORDER BY l.cluster, l.run_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleTail:
    """``hours`` of wall time from ``since`` to the run's end or the window's."""

    run: Run
    since: datetime
    hours: float
    was_busy: bool
    measured_hours: int
    measured_ratio: float


def idle_tails(
    site: Site, *, ended: bool, min_hours: float, idle_ratio: float, measured_ratio: float
) -> Iterator[IdleTail]:
    """Tails of ended or of still open runs that are at least ``min_hours`` long."""
    for row in site.rows(_TAILS, [idle_ratio]):
        run = site.run(row["cluster"], row["run_id"])
        if run is None or run.ended(site.window.until) is not ended or run.start_at is None:
            continue
        end = min(run.end_at or site.window.until, site.window.until)
        since = max(row["since"], run.start_at, site.window.since)
        hours = (end - since).total_seconds() / 3600
        measured = row["idle"] / (row["idle"] + row["unmeasured"])
        if hours >= min_hours and measured >= measured_ratio:
            yield IdleTail(
                run=run, since=since, hours=hours, was_busy=row["last_busy"] is not None,
                measured_hours=row["measured_hours"], measured_ratio=measured,
            )  # fmt: skip
