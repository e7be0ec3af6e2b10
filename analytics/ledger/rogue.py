"""GPUs that a process uses and no allocation explains, on a site with a scheduler.

A GPU counts only where it cannot be a holder's: its node has no run whose GPUs the facts leave
unnamed at that time, and no allocation names it.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from analytics.ledger.facts import Facts
from analytics.ledger.fleet import Fleet
from analytics.window import from_us
from collector.store import Work

_USED = """
WITH used AS (
  SELECT node, coalesce(gpu_uuid, CAST(gpu_index AS VARCHAR)) AS gpu, epoch_us(ts) AS t,
    CAST(step_s * 1e6 AS BIGINT) AS step
  FROM sample s
  WHERE cluster = $1 AND ts > $2 AND ts <= $3 AND run_id IS NULL AND mig_uuid IS NULL
    AND (processes > 0 OR util_ratio > 0) AND NOT EXISTS (
      SELECT 1 FROM allocation a WHERE a.cluster = s.cluster AND a.node = s.node
        AND a.gpu_uuid IS NULL AND a.gpus > 0 AND a.start_at < s.ts
        AND coalesce(a.end_at, 'infinity') >= s.ts)),
marked AS (
  SELECT *, t - lag(t) OVER device > 2 * step AS breaks FROM used
  WINDOW device AS (PARTITION BY node, gpu ORDER BY t)),
island AS (
  SELECT *, sum(CASE WHEN breaks IS NOT FALSE THEN 1 ELSE 0 END)
    OVER (PARTITION BY node, gpu ORDER BY t) AS nth FROM marked)
SELECT node, gpu, min(t - step) AS t0, max(t) AS t1 FROM island GROUP BY node, gpu, nth
ORDER BY ALL"""


def rogue_use(work: Work, facts: Facts, fleet: Fleet, since: int) -> list[tuple[int, int, int]]:
    """``(pool, t0, t1)`` of each stretch in which one GPU was used by nobody's run."""
    params = [facts.cluster, from_us(since), from_us(facts.until)]
    named: dict[str, list[tuple[int, int]]] = defaultdict(list)
    claims = facts.allocations
    for a in claims.at(np.flatnonzero(claims.gpu >= 0)):
        named[a.gpu_uuid or ""].append((a.t0, a.t1))
    found: list[tuple[int, int, int]] = []
    for row in work.rows(_USED, params):
        pools = fleet.pools_of(row["node"])
        if pools:
            free = _without((row["t0"], row["t1"]), sorted(named[row["gpu"]]))
            found.extend((pools[0], t0, t1) for t0, t1 in free)
    return found


def _without(span: tuple[int, int], taken: list[tuple[int, int]]) -> list[tuple[int, int]]:
    parts, (at, end) = [], span
    for t0, t1 in taken:
        if t1 > at and t0 < end:
            parts.append((at, t0))
            at = max(at, t1)
    return [(a, b) for a, b in [*parts, (at, end)] if a < b]
