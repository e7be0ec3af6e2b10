"""Whose GPU time applied advice is judged by: that of the rows its saving was added up from."""

from __future__ import annotations

from dataclasses import dataclass

from collector.store import Work

# One row = a part of the saving as the last report before it was applied stated it.
_PARTS = """
SELECT DISTINCT p.node, p.gpu_model, r.account, r.user_name,
  CASE WHEN p.claim LIKE 'free:%' THEN try_cast(right(p.claim, 2) AS INTEGER) END AS hour
FROM recommendation_part p
LEFT JOIN job_run r ON r.cluster = p.cluster AND r.run_id = p.run_id
WHERE p.recommendation_id = $1 AND p.report_id = $2 AND p.amount = 'saving'
"""


@dataclass(frozen=True, slots=True)
class Scope:
    """``people``: (account, user) of the runs; ``hours``: UTC hours of the day, none = all."""

    people: frozenset[tuple[str | None, str | None]] = frozenset()
    nodes: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset()
    hours: frozenset[int] = frozenset()


NOBODY = Scope()  # of a change that is not about some people's or nodes' hours


def scope_of(work: Work, recommendation_id: str, report_id: str) -> Scope:
    """From the rows that the report keeps behind its amount."""
    rows = work.rows(_PARTS, [recommendation_id, report_id])
    people = {(row["account"], row["user_name"]) for row in rows}
    return Scope(
        people=frozenset(people - {(None, None)}),
        nodes=frozenset(row["node"] for row in rows if row["node"] is not None),
        models=frozenset(row["gpu_model"] for row in rows if row["gpu_model"] is not None),
        hours=frozenset(row["hour"] for row in rows if row["hour"] is not None),
    )
