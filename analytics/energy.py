"""Board energy per hour and run, rolled up from samples and kept when the samples go.

The counter's differences decide; power times time is the fallback, capped at twice the sample's
step. A difference belongs to the hour in which it was read. A counter that fell was reset with the
driver: what it shows then is what came since. Slices have no energy of their own: only samples of
boards count.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from analytics.window import Window
from collector.store import Work

_DAY = timedelta(days=1)
_LOOK_BACK = timedelta(hours=1)
"""A counter's difference over a longer silence cannot be said to belong to a run or an hour."""
_HOUR = "time_bucket(INTERVAL 1 HOUR, ts - INTERVAL 1 MICROSECOND)"
_ROLL_UP = f"""
INSERT INTO energy_hour
WITH reading AS (
  SELECT *, {_HOUR} AS hour, lag(energy_mj) OVER ticks AS had,
    epoch_us(ts) - epoch_us(lag(ts) OVER ticks) AS gap_us,
    CAST(step_s * 1000000 AS BIGINT) AS step_us
  FROM sample WHERE cluster = $1 AND mig_uuid IS NULL AND ts > $4 AND ts <= $3
  WINDOW ticks AS (PARTITION BY node, gpu_uuid, gpu_index ORDER BY ts)),
piece AS (
  SELECT *, least(coalesce(gap_us, step_us), 2 * step_us) AS short_us,
    CASE WHEN energy_mj IS NOT NULL AND had IS NOT NULL AND gap_us <= 3600000000 THEN 'counter'
      WHEN power_mw IS NOT NULL THEN 'power' END AS method
  FROM reading WHERE hour >= $2 AND hour < $3),
amount AS (
  SELECT *,
    CASE method WHEN 'counter' THEN CASE WHEN energy_mj >= had THEN energy_mj - had ELSE energy_mj
      END ELSE power_mw * short_us / 1000000 END AS mj,
    CASE method WHEN 'counter' THEN gap_us ELSE short_us END AS us
  FROM piece WHERE method IS NOT NULL)
SELECT $1, hour, node, gpu_uuid, gpu_index, run_id, CAST(round(sum(mj)) AS BIGINT),
  CAST(sum(us) AS BIGINT), method
FROM amount GROUP BY hour, node, gpu_uuid, gpu_index, run_id, method
"""  # noqa: S608 - our own expression
_COUNTS = f"""
SELECT {_HOUR} AS hour, count(*) AS samples FROM sample
WHERE cluster = $1 AND mig_uuid IS NULL AND ts > $2 AND ts <= $3 GROUP BY 1
"""  # noqa: S608 - our own expression


def roll_up(work: Work, cluster: str, window: Window) -> int:
    """Bring the roll-up of the days that the window touches up to date; returns the days made.

    A day is made again where more samples are there than it was made of; fewer are retention.
    """
    made = 0
    for since, until in _days(window):
        now = {r["hour"]: r["samples"] for r in work.rows(_COUNTS, [cluster, since, until])}
        had = {
            row["hour"]: row["samples"]
            for row in work.rows(
                "SELECT hour, samples FROM energy_build WHERE cluster = ? AND hour >= ? "
                "AND hour < ?",
                [cluster, since, until],
            )
        }
        if not any(count > had.get(hour, 0) for hour, count in now.items()):
            continue
        for table in ("energy_hour", "energy_build"):
            work.execute(
                f"DELETE FROM {table} WHERE cluster = ? AND hour >= ? AND hour < ?",  # noqa: S608 - our own names
                [cluster, since, until],
            )
        work.execute(_ROLL_UP, [cluster, since, until, since - _LOOK_BACK])
        hours = sorted(now)
        work.append(
            "energy_build",
            {"cluster": [cluster] * len(hours), "hour": hours, "samples": [now[h] for h in hours]},
        )
        made += 1
    return made


def _days(window: Window) -> Iterator[tuple[datetime, datetime]]:
    day = window.since.replace(hour=0, minute=0, second=0, microsecond=0)
    while day < window.until:
        yield day, day + _DAY
        day += _DAY
