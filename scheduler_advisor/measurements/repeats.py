"""Repeated runs of one job that were fast one day and slow another, beside their placements.

A class is one user's job of one name, GPU count and GPU model with at least four completed runs.
It varies when its slowest run took at least half as long again as its fastest. Nothing is claimed
about the reason; the placements stand side by side, and where every fast run sat tighter than
every slow one the class is marked ``placement_explains`` (modelled).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from collector.store import Work
from scheduler_advisor.measurements.quantiles import quantile
from scheduler_advisor.window import Window

MIN_RUNS = 4
VARIES = 1.5
SHORTEST_S = 600  # start-up noise decides below ten minutes

# One row = a completed run of the window with where it sat.
_RUNS = """
SELECT r.cluster, r.run_id, r.job_id, j.name, r.user_name, r.account, r.gpus, r.start_at,
  epoch(r.end_at - r.start_at) - coalesce(r.suspended_s, 0) AS run_s,
  count(DISTINCT a.node) AS nodes, list(DISTINCT a.node ORDER BY a.node) AS node_names,
  any_value(a.gpu_model) AS gpu_model,
  count(DISTINCT n.leaf) AS leaves,
  count(DISTINCT a.node) FILTER (n.leaf IS NOT NULL) AS leaf_known
FROM job_run r JOIN job j ON j.cluster = r.cluster AND j.job_id = r.job_id
JOIN allocation a ON a.cluster = r.cluster AND a.run_id = r.run_id
ASOF LEFT JOIN (SELECT * FROM node ORDER BY valid_from) n
  ON n.cluster = a.cluster AND n.node = a.node AND n.valid_from <= a.start_at
WHERE r.state = 'COMPLETED' AND r.gpus > 0 AND r.end_at >= $1 AND r.end_at < $2
  AND j.name IS NOT NULL AND ($3::VARCHAR IS NULL OR r.cluster = $3)
GROUP BY ALL
ORDER BY r.cluster, r.start_at, r.run_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatRun:
    """One completed run and its placement; ``leaves`` None = switches unknown."""

    run_id: str
    job_id: str
    start_at: datetime
    run_s: float
    nodes: int
    leaves: int | None
    node_names: tuple[str, ...]

    @property
    def placement(self) -> tuple[int, int]:
        """Smaller is tighter: leaf switches first, then nodes."""
        return (self.leaves or 0, self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """One class of repeated job with its runs, fastest first."""

    cluster: str
    name: str
    user_name: str | None
    account: str | None
    gpus: int
    gpu_model: str | None
    runs: tuple[RepeatRun, ...]

    @property
    def ratio(self) -> float:
        """Slowest over fastest run time."""
        return self.runs[-1].run_s / self.runs[0].run_s

    @property
    def median_s(self) -> float:
        """Median run time."""
        return quantile([run.run_s for run in self.runs], 0.5) or 0.0

    @property
    def slow(self) -> tuple[RepeatRun, ...]:
        """Runs at least `VARIES` times as long as the fastest."""
        return tuple(run for run in self.runs if run.run_s >= VARIES * self.runs[0].run_s)

    @property
    def placement_explains(self) -> bool:
        """Every slow run sat looser than every other run."""
        fast = [run.placement for run in self.runs if run not in self.slow]
        slow = [run.placement for run in self.slow]
        return bool(fast and slow) and min(slow) > max(fast)

    @property
    def excess_gpu_hours(self) -> float:
        """GPU-hours the slow runs took beyond the median of the others (modelled)."""
        usual = quantile([r.run_s for r in self.runs if r not in self.slow], 0.5) or 0.0
        return sum(run.run_s - usual for run in self.slow) * self.gpus / 3600


def varying_repeats(work: Work, window: Window, cluster: str | None = None) -> list[Repeat]:
    """Classes whose run time varies, the most wasteful first."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for run in work.rows(_RUNS, [window.since, window.until, cluster]):
        if run["run_s"] >= SHORTEST_S:
            key = ("cluster", "name", "user_name", "account", "gpus", "gpu_model")
            groups[tuple(run[k] for k in key)].append(run)
    found = [_repeat(runs) for runs in groups.values() if len(runs) >= MIN_RUNS]
    varying = [repeat for repeat in found if repeat.ratio >= VARIES]
    return sorted(varying, key=lambda r: (-r.excess_gpu_hours, r.name))


def _repeat(rows: Sequence[dict[str, Any]]) -> Repeat:
    runs = sorted(
        (
            RepeatRun(
                run_id=row["run_id"], job_id=row["job_id"], start_at=row["start_at"],
                run_s=row["run_s"], nodes=row["nodes"], node_names=tuple(row["node_names"]),
                leaves=row["leaves"] if row["leaf_known"] == row["nodes"] else None,
            )
            for row in rows
        ),
        key=lambda run: (run.run_s, run.run_id),
    )  # fmt: skip
    names = ("cluster", "name", "user_name", "account", "gpus", "gpu_model")
    return Repeat(**{name: rows[0][name] for name in names}, runs=tuple(runs))
