"""The days of one kind of advice from facts: GPU-hours of its fault, and the load beside them."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np

from analytics.ledger import LedgerClass
from collector.store import Work
from scheduler_advisor.advice.amount import MICRO_GPU_S_PER_HOUR
from scheduler_advisor.followup.changes import Changed
from scheduler_advisor.followup.measure import Load, Measure, Of
from scheduler_advisor.followup.realised import Days

# One row = a UTC day all of whose hours are in the ledger, at least half of them known.
_WHOLE = """
SELECT h.hour::DATE AS day FROM ledger_hour h JOIN ledger_pool p ON p.pool_key = h.pool_key
WHERE p.cluster = $1 AND h.hour >= $2 AND h.hour < $3 GROUP BY day
HAVING count(DISTINCT h.hour) = 24 AND sum(h.unknown) * 2 <= sum({all}) ORDER BY day
"""
_ALL = " + ".join(f"h.{each}" for each in LedgerClass)
_PERSON = "coalesce(r.account, '') || chr(31) || coalesce(r.user_name, '')"
_WHO = f"""
  ($4::VARCHAR[] IS NULL OR list_contains($4::VARCHAR[], {_PERSON}))
  AND ($5::VARCHAR[] IS NULL OR list_contains($5::VARCHAR[], coalesce(r.account, '')))
"""
# One row = one UTC day of the fault; $4 people, $5 accounts, $6 nodes, $7 models, $8 hours of the
# day, each NULL = all; $9: only hours in which the run did something.
_DAYS = """
WITH c AS (
  SELECT h.*, p.node, p.gpu_model, l.run_id,
    sum(h.used + h.lost) OVER (PARTITION BY l.run_id, h.hour) AS busy
  FROM ledger_hour h JOIN ledger_pool p ON p.pool_key = h.pool_key
  LEFT JOIN ledger_run l ON l.run_key = h.run_key
  WHERE p.cluster = $1 AND h.hour >= $2 AND h.hour < $3)
SELECT c.hour::DATE AS day, sum({micro})::DOUBLE AS micro, sum(c.used + c.lost)::DOUBLE AS used,
  sum(c.allocated_idle)::DOUBLE AS idle, sum(c.allocated_unmeasured)::DOUBLE AS unmeasured,
  count(DISTINCT (c.run_id, c.hour))::DOUBLE AS run_hours,
  count(DISTINCT c.run_id) FILTER (r.start_at::DATE = c.hour::DATE)::DOUBLE AS begun
FROM c LEFT JOIN job_run r ON r.cluster = $1 AND r.run_id = c.run_id
WHERE {who}
  AND ($6::VARCHAR[] IS NULL OR list_contains($6::VARCHAR[], c.node))
  AND ($7::VARCHAR[] IS NULL OR list_contains($7::VARCHAR[], c.gpu_model))
  AND ($8::INTEGER[] IS NULL OR list_contains($8::INTEGER[], hour(c.hour)::INTEGER))
  AND (NOT $9 OR c.busy > 0) AND {runs}
GROUP BY day
"""
_CAUSED = """
SELECT c.hour::DATE AS day, sum(c.gpu_us)::DOUBLE AS micro
FROM ledger_cause c JOIN ledger_pool p ON p.pool_key = c.pool_key
JOIN ledger_run l ON l.run_key = c.run_key
JOIN job_run r ON r.cluster = l.cluster AND r.run_id = l.run_id
WHERE p.cluster = $1 AND c.hour >= $2 AND c.hour < $3 AND c.role = 'causer' AND {who}
  AND list_contains($6::VARCHAR[], c.class)
GROUP BY day
"""
_WRITING = """
WITH m AS (
  SELECT run_id, job_id, kind, ts, lead(ts) OVER w AS done, lead(kind) OVER w AS next FROM event
  WHERE cluster = $1 AND kind IN ('checkpoint_begin', 'checkpoint_end') AND ts >= $2 AND ts < $3
  WINDOW w AS (PARTITION BY run_id, job_id ORDER BY ts))
SELECT m.ts::DATE AS day, sum(epoch(m.done - m.ts) * r.gpus * 1e6)::DOUBLE AS micro
FROM m JOIN job_run r ON r.cluster = $1 AND (r.run_id = m.run_id OR (m.run_id IS NULL
  AND r.job_id = m.job_id AND m.ts >= r.start_at AND m.ts < coalesce(r.end_at, m.done)))
WHERE m.kind = 'checkpoint_begin' AND m.next = 'checkpoint_end' AND {who}
GROUP BY day
"""
# One row = a day on which parts of jobs began: what the early ones held until the last had begun.
_APART = """
WITH part AS (
  SELECT run_id, node, min(start_at) AS start_at, sum(gpus) AS gpus FROM allocation
  WHERE cluster = $1 AND start_at >= $2 AND start_at < $3 GROUP BY run_id, node),
g AS (SELECT *, max(start_at) OVER (PARTITION BY run_id) AS full_at FROM part)
SELECT start_at::DATE AS day, sum(epoch(full_at - start_at) * gpus * 1e6)::DOUBLE AS micro
FROM g GROUP BY day
"""
_ASKED = """
SELECT submit_at::DATE AS day,
  sum(gpus * epoch(coalesce(end_at, $3) - start_at) / 3600)::DOUBLE AS asked
FROM job_run WHERE cluster = $1 AND submit_at >= $2 AND submit_at < $3 AND start_at < $3
GROUP BY day
"""


def fact_days(work: Work, change: Changed, since: datetime, until: datetime) -> Days:
    """Of the whole UTC days from ``since`` to ``until`` (both midnights) that the ledger holds."""
    measure = change.measure
    assert measure is not None
    span: list[object] = [change.cluster, since, until]
    whole = [row["day"] for row in work.rows(_WHOLE.format(all=_ALL), span)]
    found = {row["day"]: row for row in _rows(work, change, measure, span)}
    more = _more(work, change, measure, span)
    asked = {row["day"]: row["asked"] for row in work.rows(_ASKED, span)}
    days = [day for day in whole if not measure.activity or _measured(found.get(day))]
    fault = [_fault(found.get(day), measure, change.target) + more.get(day, 0.0) for day in days]
    load = [_load(found.get(day), measure, asked.get(day, 0.0)) for day in days]
    return Days(np.array(fault) / MICRO_GPU_S_PER_HOUR, np.array(load))


def _rows(
    work: Work, change: Changed, measure: Measure, span: list[object]
) -> list[dict[str, Any]]:
    scope = change.scope
    nodes = sorted(scope.nodes) if measure.of is Of.NODES else None
    models = sorted(scope.models) if measure.models else None
    hours = sorted(scope.hours) if measure.of is Of.NODES and scope.hours else None
    sql = _DAYS.format(micro=measure.micro, who=_WHO, runs=measure.runs)
    return work.rows(sql, [*span, *_who(change, measure), nodes, models, hours, measure.above])


def _who(change: Changed, measure: Measure) -> list[list[str] | None]:
    """People, accounts; None = everybody."""
    people = accounts = None
    if measure.of is Of.PEOPLE:
        people = sorted(f"{account or ''}\x1f{user or ''}" for account, user in change.scope.people)
    if measure.of is Of.ACCOUNTS:
        accounts = sorted({account or "" for account, _ in change.scope.people})
    return [people, accounts]


def _more(work: Work, change: Changed, measure: Measure, span: list[object]) -> dict[date, float]:
    """What stands in no column of the cells, by day."""
    who = _who(change, measure)
    rows: list[dict[str, Any]] = []
    if measure.cause:
        rows += work.rows(_CAUSED.format(who=_WHO), [*span, *who, list(measure.cause)])
    if measure.writing:
        rows += work.rows(_WRITING.format(who=_WHO), [*span, *who])
    if measure.apart:
        rows += work.rows(_APART, span)
    return {row["day"]: row["micro"] for row in rows}


def _measured(row: dict[str, Any] | None) -> bool:
    """Whether at least half of what was held that day was measured; nothing held is known."""
    return row is None or row["unmeasured"] <= row["used"] + row["idle"]


def _fault(row: dict[str, Any] | None, measure: Measure, target: float | None) -> float:
    if row is None:
        return 0.0
    if measure.above:
        return max(0.0, float(row["idle"] - row["used"] * (1 / (target or 1.0) - 1)))
    return float(row["micro"])


def _load(row: dict[str, Any] | None, measure: Measure, asked: float) -> float:
    if measure.load is Load.ASKED:
        return asked
    if row is None:
        return 0.0
    if measure.load is Load.USED:
        return float(row["used"] / MICRO_GPU_S_PER_HOUR)
    return float(row["begun"] if measure.load is Load.BEGUN else row["run_hours"])
