"""Work thrown away by runs that were preempted, lost their node or were requeued."""

from __future__ import annotations

from dataclasses import dataclass, replace

from analytics.ledger.checkpoints import Intervals
from analytics.ledger.facts import Facts
from analytics.ledger.held import Held, Piece
from analytics.ledger.runs import Run
from analytics.ledger.settings import LedgerSettings
from analytics.window import from_us
from collector.store import Work

THROWN_STATES = frozenset({"PREEMPTED", "NODE_FAIL", "REQUEUED"})
KEPT, LOST, POSSIBLY = range(3)
"""What became of a piece's active time: kept, known to be thrown away, or nobody can tell."""


@dataclass(frozen=True, slots=True)
class Durable:
    """Until when a run's work is safe (None = nobody can tell), and how that is known: mark,
    declared, learnt or none."""

    t: int | None
    evidence: str
    text: str


def durable_points(work: Work, facts: Facts, settings: LedgerSettings) -> dict[str, Durable]:
    """Per run that threw work away: its last checkpoint by its own marks, else by the interval that
    is declared for such jobs or that their marks show. Without any of these nobody can tell."""
    thrown = {
        run.run_id: run
        for run in facts.runs.in_states(THROWN_STATES)
        if run.t0 is not None and run.t1 is not None
    }
    if not thrown:
        return {}
    intervals = Intervals.load(work, facts.cluster, list(thrown.values()), settings)
    return {run_id: _durable(run, intervals) for run_id, run in thrown.items()}


def _durable(run: Run, intervals: Intervals) -> Durable:
    t0, t1 = run.t0 or 0, run.t1 or 0
    inside = [t for t in intervals.marks_of(run) if t0 <= t <= t1]
    if inside:
        return Durable(
            max(inside), "mark", f"checkpoint at {from_us(max(inside)):%Y-%m-%d %H:%M:%S}"
        )
    known = intervals.interval_of(run)
    if known is None:
        return Durable(None, "none", "no checkpoint is known: at most all of it")
    step, evidence, text = known
    return Durable(t0 + (t1 - t0) // step * step, evidence, text)


def mark_thrown(held: Held, points: dict[str, Durable]) -> None:
    """Split pieces at the last durable point of their run."""
    if not points:
        return
    held.take_out_runs(points.keys())
    result: list[Piece] = []
    for piece in held.pieces:
        if piece.run_id not in points:
            result.append(piece)
            continue
        durable = points[piece.run_id].t
        if durable is None:
            result.append(replace(piece, thrown=POSSIBLY))
            continue
        if piece.t0 < durable:
            result.append(replace(piece, t1=min(piece.t1, durable)))
        if piece.t1 > durable:
            result.append(replace(piece, t0=max(piece.t0, durable), thrown=LOST))
    held.pieces = result
