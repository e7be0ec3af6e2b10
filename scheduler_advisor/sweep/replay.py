"""One cell's replay, as it runs in whatever process it is sent to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.hashes import digest
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.replay_summary import summarised
from scheduler_advisor.sweep.cells import Cell


@dataclass(frozen=True, slots=True)
class Replayed:
    """The figures of a cell. ``outcome_hash``: of every start and end, equal wherever it ran.

    ``engine_s``: CPU seconds of the replay; 0 where the figures came from the cache.
    """

    summary: dict[str, Any]
    outcome_hash: str
    engine_s: float
    cached: bool = False


def replay(jobs: Jobs, cluster: Cluster, cell: Cell) -> Replayed:
    """Run one cell."""
    outcome = simulate(jobs, cluster, cell.policy)
    done = outcome.started
    return Replayed(
        summary=summarised(outcome),
        outcome_hash=digest(outcome.state, outcome.first_start[done], outcome.end[done]),
        engine_s=outcome.engine_s,
    )
