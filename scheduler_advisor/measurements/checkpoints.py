"""How often checkpoints are written and how long recovery takes, per class of job.

From marks (``unstrand mark checkpoint-begin`` and friends) where they exist. Long runs without a
mark are counted as unknown: nothing is assumed about them.

The optimum interval is Daly's first order form (Young 1974, Daly 2006): sqrt(2 x C x M) - C with C
the seconds a checkpoint takes and M the mean seconds between interruptions of this class.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from math import sqrt
from typing import Any

from collector.store import Work
from scheduler_advisor.measurements.quantiles import quantile
from scheduler_advisor.window import Window

LONG_RUN_S = 4 * 3600  # a run shorter than this loses little; it is not asked for marks
INTERRUPTED = ("PREEMPTED", "NODE_FAIL", "REQUEUED")

# One row = a GPU run that held GPUs in the window.
_RUNS = """
SELECT r.cluster, r.run_id, r.job_id, j.name, r.user_name, r.account, r.gpus, r.state,
  greatest(r.start_at, $1) AS start_at, least(coalesce(r.end_at, $2), $2) AS end_at,
  r.end_at IS NOT NULL AND r.end_at <= $2 AS ended
FROM job_run r LEFT JOIN job j ON j.cluster = r.cluster AND j.job_id = r.job_id
WHERE ($3::VARCHAR IS NULL OR r.cluster = $3) AND r.gpus > 0 AND r.start_at < $2
  AND coalesce(r.end_at, $2) > $1
ORDER BY r.cluster, r.run_id
"""

# One row = a mark of a run, in order of time.
_MARKS = """
SELECT cluster, run_id, job_id, kind, ts FROM event
WHERE kind IN ('checkpoint_begin', 'checkpoint_end', 'restore_begin', 'restore_end')
  AND ts >= $1 AND ts < $2 AND ($3::VARCHAR IS NULL OR cluster = $3)
ORDER BY cluster, run_id, ts
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointClass:
    """The runs of one job name and user. A None is not measured, never zero."""

    name: str | None
    user_name: str | None
    account: str | None
    runs: int
    long_runs: int
    long_runs_without_marks: int
    gpu_hours: float
    run_hours: float
    interruptions: int
    checkpoints: int
    interval_s: float | None
    write_s: float | None
    restore_s: float | None
    run_ids: tuple[str, ...]
    lost_gpu_hours_bound: float

    @property
    def mean_between_interruptions_s(self) -> float | None:
        """Run time per interruption of this class; None where none was seen."""
        return self.run_hours * 3600 / self.interruptions if self.interruptions else None

    @property
    def optimum_interval_s(self) -> float | None:
        """Daly's interval for the measured checkpoint time and interruptions."""
        between = self.mean_between_interruptions_s
        if not self.write_s or between is None:
            return None
        return max(self.write_s, sqrt(2 * self.write_s * between) - self.write_s)


def checkpoint_classes(
    work: Work, window: Window, cluster: str | None = None
) -> list[CheckpointClass]:
    """Every class of GPU job in the window, the largest in GPU-hours first."""
    span = [window.since, window.until, cluster]
    marks = _by_run(work.rows(_MARKS, span))
    classes: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for run in work.rows(_RUNS, span):
        run["marks"] = _marks_of(run, marks)
        classes[run["cluster"], run["name"], run["user_name"], run["account"]].append(run)
    found = [_class(runs) for runs in classes.values()]
    return sorted(found, key=lambda c: (-c.gpu_hours, c.name or "", c.user_name or ""))


_Marks = dict[tuple[str, str], list[tuple[str, datetime]]]


def _by_run(rows: Sequence[dict[str, Any]]) -> _Marks:
    marks: _Marks = defaultdict(list)
    for row in rows:
        key = row["run_id"] or f"job:{row['job_id']}"
        marks[row["cluster"], key].append((row["kind"], row["ts"]))
    return marks


def _marks_of(run: dict[str, Any], marks: _Marks) -> list[tuple[str, datetime]]:
    """The run's own marks, and those that name only its job while it ran."""
    own = marks.get((run["cluster"], run["run_id"]), [])
    of_job = marks.get((run["cluster"], f"job:{run['job_id']}"), [])
    while_running = [m for m in of_job if run["start_at"] <= m[1] <= run["end_at"]]
    return sorted(own + while_running, key=lambda mark: mark[1])


def _pairs(marks: Sequence[tuple[str, datetime]], kind: str) -> list[tuple[datetime, datetime]]:
    """(begin, end) of each ``kind`` that has both; a begin without an end is not durable."""
    pairs, begun = [], None
    for name, at in marks:
        if name == f"{kind}_begin":
            begun = at
        elif name == f"{kind}_end":
            pairs.append((begun or at, at))
            begun = None
    return pairs


def _class(runs: Sequence[dict[str, Any]]) -> CheckpointClass:
    writes, restores, gaps, bound = [], [], [], 0.0
    for run in runs:
        done = _pairs(run["marks"], "checkpoint")
        writes += [(end - begin).total_seconds() for begin, end in done if end > begin]
        restores += [
            (end - begin).total_seconds() for begin, end in _pairs(run["marks"], "restore")
        ]
        ends = [run["start_at"], *(end for _, end in done)]
        gaps += [(b - a).total_seconds() for a, b in pairwise(ends)]
        if run["ended"] and run["state"] in INTERRUPTED:
            bound += (run["end_at"] - ends[-1]).total_seconds() / 3600 * run["gpus"]
    long_runs = [r for r in runs if _seconds(r) >= LONG_RUN_S]
    first = runs[0]
    return CheckpointClass(
        name=first["name"], user_name=first["user_name"], account=first["account"],
        runs=len(runs), long_runs=len(long_runs),
        long_runs_without_marks=sum(not r["marks"] for r in long_runs),
        gpu_hours=sum(_seconds(r) * r["gpus"] for r in runs) / 3600,
        run_hours=sum(_seconds(r) for r in runs) / 3600,
        interruptions=sum(r["ended"] and r["state"] in INTERRUPTED for r in runs),
        checkpoints=sum(len(_pairs(r["marks"], "checkpoint")) for r in runs),
        interval_s=quantile(sorted(gaps), 0.5), write_s=quantile(sorted(writes), 0.5),
        restore_s=quantile(sorted(restores), 0.5), run_ids=tuple(r["run_id"] for r in runs),
        lost_gpu_hours_bound=bound,
    )  # fmt: skip


def _seconds(run: dict[str, Any]) -> float:
    return float((run["end_at"] - run["start_at"]).total_seconds())
