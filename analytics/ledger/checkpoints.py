"""How often jobs write a checkpoint: marks of their own, declared, or learnt from jobs alike.

A job class is the jobs of one account whose names differ in digits only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_low
from typing import Any

from analytics.ledger.runs import Run
from analytics.ledger.settings import LedgerSettings
from analytics.window import from_us
from collector.store import Work

LEARNT_OVER_DAYS = 28
LEAST_GAPS = 3
"""So many distances between marks make an interval."""
_DAY_US = 86_400_000_000
_LABEL = re.compile(r"checkpoint[-_.]interval[-_.]?s\W+(\d+(?:\.\d+)?)", re.IGNORECASE)

JobClass = tuple[str, str]
"""account, name with # for digits."""

_MARKS = """
SELECT DISTINCT e.run_id, coalesce(e.job_id, r.job_id) AS job_id, epoch_us(e.ts) AS t FROM event e
LEFT JOIN (SELECT run_id, min(job_id) AS job_id FROM job_run WHERE cluster = $1 GROUP BY run_id) r
  ON r.run_id = e.run_id
WHERE e.cluster = $1 AND e.kind = 'checkpoint_end' AND e.ts >= $2 AND e.ts <= $3 ORDER BY t"""
_OWNERS = """
SELECT job_id, min(account) AS account, min(name) AS name, max(labels) AS labels
FROM job WHERE cluster = ?
  AND job_id IN (SELECT unnest(CAST(? AS VARCHAR[]))) GROUP BY job_id"""
_DECLARED = """
SELECT account, job_name, interval_s, epoch_us(effective_from) AS t FROM checkpoint_interval
WHERE cluster = ? OR cluster IS NULL
ORDER BY (account IS NOT NULL)::INT + 2 * (job_name IS NOT NULL)::INT, t, interval_s"""


def job_class(account: str | None, name: str | None) -> JobClass:
    return (account or "", re.sub(r"\d+", "#", name or ""))


@dataclass(slots=True)
class Intervals:
    """What is known of the checkpoints of some runs' jobs."""

    settings: LedgerSettings
    classes: dict[str, JobClass]
    labels: dict[str, str | None]
    declared: list[dict[str, Any]]
    marks: dict[str, list[int]]
    gaps: dict[JobClass, list[tuple[int, int]]]
    """Per class (instant of a mark, time since the one before it)."""

    @classmethod
    def load(cls, work: Work, cluster: str, runs: list[Run], settings: LedgerSettings) -> Intervals:
        """For runs that have ended."""
        first = min((run.t0 or 0) for run in runs)
        last = max((run.t1 or 0) for run in runs)
        since = min(first, min((run.t1 or 0) for run in runs) - LEARNT_OVER_DAYS * _DAY_US)
        rows = work.rows(_MARKS, [cluster, from_us(max(since, 0)), from_us(last)])
        jobs = sorted({run.job_id for run in runs} | {r["job_id"] for r in rows if r["job_id"]})
        known = {row["job_id"]: row for row in work.rows(_OWNERS, [cluster, jobs])}
        classes = {
            job: job_class(known[job]["account"], known[job]["name"])
            for job in jobs
            if job in known
        }
        marks: dict[str, list[int]] = defaultdict(list)
        for row in rows:
            named = f"run {row['run_id']}" if row["run_id"] else f"job {row['job_id']}"
            marks[named].append(row["t"])
        return cls(
            settings, classes, {job: row["labels"] for job, row in known.items()},
            work.rows(_DECLARED, [cluster]), marks, _gaps(rows, classes),
        )  # fmt: skip

    def marks_of(self, run: Run) -> list[int]:
        """Checkpoints that name the run or its job."""
        return self.marks.get(f"run {run.run_id}", []) + self.marks.get(f"job {run.job_id}", [])

    def interval_of(self, run: Run) -> tuple[int, str, str] | None:
        """Interval in us, evidence, words: the job's own wish, the class's or the cluster's
        declaration, then what the class's marks show; None = nothing is known."""
        found = _LABEL.search(self.labels.get(run.job_id) or "")
        if found and float(found.group(1)) > 0:
            return _declared(float(found.group(1)), "the job says")
        mine = self.classes.get(run.job_id)
        rows = [row for row in self.declared if _names(row, mine) and row["t"] <= (run.t1 or 0)]
        if rows:
            # The narrowest class wins, and of its rows the last.
            return _declared(rows[-1]["interval_s"], "declared for its class")
        if self.settings.checkpoint_interval_s > 0:
            return _declared(self.settings.checkpoint_interval_s, "declared for the cluster")
        until = run.t1 or 0
        since = until - LEARNT_OVER_DAYS * _DAY_US
        gaps = [gap for t, gap in self.gaps.get(mine or ("", ""), []) if since <= t < until]
        if mine is None or len(gaps) < LEAST_GAPS:
            return None
        step = median_low(gaps)
        return step, "learnt", f"every {step / 1e6:.0f} s: median of {len(gaps)} of its class"


def _declared(seconds: float, words: str) -> tuple[int, str, str]:
    return round(seconds * 1e6), "declared", f"every {seconds:.0f} s: {words}"


def _names(row: dict[str, Any], mine: JobClass | None) -> bool:
    """Whether a declaration is for this class; NULL = any."""
    account, name = mine or ("", "")
    return (row["account"] is None or row["account"] == account) and (
        row["job_name"] is None or job_class(None, row["job_name"])[1] == name
    )


def _gaps(
    rows: list[dict[str, Any]], classes: dict[str, JobClass]
) -> dict[JobClass, list[tuple[int, int]]]:
    by_run: dict[str, list[int]] = defaultdict(list)
    of: dict[str, JobClass] = {}
    for row in rows:
        if row["job_id"] in classes:
            named = f"run {row['run_id']}" if row["run_id"] else f"job {row['job_id']}"
            by_run[named].append(row["t"])
            of[named] = classes[row["job_id"]]
    gaps: dict[JobClass, list[tuple[int, int]]] = defaultdict(list)
    for named, times in by_run.items():
        for a, b in pairwise(sorted(times)):
            if b > a:
                gaps[of[named]].append((b, b - a))
    return gaps
