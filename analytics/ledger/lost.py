"""Work thrown away by runs that were preempted, lost their node or were requeued."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from analytics.ledger.facts import Facts
from analytics.ledger.held import Piece
from analytics.window import from_us
from collector.store import Work

THROWN_STATES = frozenset({"PREEMPTED", "NODE_FAIL", "REQUEUED"})
KEPT, LOST, POSSIBLY = range(3)
"""What became of a piece's active time: kept, known to be thrown away, or nobody can tell."""

_MARKS = """
SELECT DISTINCT e.run_id, e.job_id, epoch_us(e.ts) AS t FROM event e
WHERE e.cluster = ? AND e.kind = 'checkpoint_end' AND e.ts < ? ORDER BY t"""


def durable_points(work: Work, facts: Facts) -> dict[str, int | None]:
    """Per run that threw work away: until when its work is safe; None = there is no evidence."""
    thrown = {
        run.run_id: run
        for run in facts.runs.values()
        if run.state in THROWN_STATES and run.t0 is not None and run.t1 is not None
    }
    if not thrown:
        return {}
    marks: dict[str, list[int]] = defaultdict(list)
    for mark in work.rows(
        _MARKS, [facts.cluster, from_us(max(r.t1 or 0 for r in thrown.values()))]
    ):
        marks[f"run {mark['run_id']}" if mark["run_id"] else f"job {mark['job_id']}"].append(
            mark["t"]
        )
    points: dict[str, int | None] = {}
    for run_id, run in thrown.items():
        known = marks[f"run {run_id}"] + marks[f"job {run.job_id}"]
        inside = [t for t in known if (run.t0 or 0) <= t <= (run.t1 or 0)]
        points[run_id] = max(inside, default=None)
    return points


def mark_thrown(pieces: list[Piece], points: dict[str, int | None]) -> list[Piece]:
    """Split pieces at the last durable point of their run."""
    result: list[Piece] = []
    for piece in pieces:
        if piece.run_id not in points:
            result.append(piece)
            continue
        durable = points[piece.run_id]
        if durable is None:
            result.append(replace(piece, thrown=POSSIBLY))
            continue
        if piece.t0 < durable:
            result.append(replace(piece, t1=min(piece.t1, durable)))
        if piece.t1 > durable:
            result.append(replace(piece, t0=max(piece.t0, durable), thrown=LOST))
    return result
