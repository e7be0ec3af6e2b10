"""Runs of jobs that go on after a stop, with their marks of checkpoints and what ended them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from statistics import median_low
from typing import Any, Protocol, cast

from analytics.ledger.checkpoints import LEAST_GAPS, Intervals
from analytics.ledger.lost import THROWN_STATES
from analytics.ledger.runs import Run
from analytics.ledger.settings import settings_at
from collector.store import Work
from scheduler_advisor.checkpoints import Evidence
from scheduler_advisor.engine.limits import Outage, OutageKind

NEAR_S = 600  # a run that ends so near to the failure of its node was ended by it
_Pairs = list[tuple[float, float]]


# One row = a job that went on after a stop: a requeued one that ended well, or one with marks.
RESUMES = """
SELECT job_id FROM job_run WHERE cluster = $1
GROUP BY job_id HAVING count(start_at) > 1 AND bool_or(state = 'COMPLETED')
UNION
SELECT DISTINCT job_id FROM event WHERE cluster = $1 AND job_id IS NOT NULL
AND kind IN ('checkpoint_end', 'restore_end')
"""
# One row = a run that held GPUs in the window, of a job that shows that it goes on after a stop.
_RUNS = f"""
SELECT r.run_id, r.job_id, r.state, epoch(r.start_at)::BIGINT AS start,
  epoch(coalesce(r.end_at, r.last_known_at, $3))::BIGINT AS stop,
  coalesce(r.suspended_s, 0)::BIGINT AS suspended, r.account, j.name
FROM job_run r LEFT JOIN job j ON j.cluster = r.cluster AND j.job_id = r.job_id
WHERE r.cluster = $1 AND r.start_at < $3 AND coalesce(r.end_at, r.last_known_at, $3) > $2
  AND r.job_id IN ({RESUMES}) ORDER BY r.job_id, r.start_at, r.run_id
"""  # noqa: S608 - our own text
# One row = a mark of a run, in order of time.
_MARKS = """
SELECT coalesce(run_id, '') AS run_id, coalesce(job_id, '') AS job_id, kind, epoch(ts) AS at
FROM event WHERE cluster = $1 AND ts >= $2 AND ts < $3
  AND kind IN ('checkpoint_begin', 'checkpoint_end', 'restore_begin', 'restore_end') ORDER BY ts
"""
_ON = """
SELECT DISTINCT run_id, node FROM allocation
WHERE cluster = ? AND run_id IN (SELECT unnest(CAST(? AS VARCHAR[])))
"""


class Facts(Protocol):
    """What is needed of a store."""

    def rows(self, sql: str, params: Any = ()) -> list[dict[str, Any]]:
        """Rows of one query."""


@dataclass(slots=True)
class Attempt:
    """One run of a job, and what ended it."""

    run_id: str
    start: int
    seconds: int
    state: str
    by_node: bool = False  # the failure of one of its nodes, which the replay has too
    ends: list[float] = field(default_factory=list)  # of its checkpoints
    writes: _Pairs = field(default_factory=list)
    reads: _Pairs = field(default_factory=list)


@dataclass(slots=True)
class Job:
    """A job that goes on after a stop."""

    job_id: str
    of: tuple[str, str]  # account and name, see `analytics.ledger.checkpoints`
    attempts: list[Attempt]
    every_with_cost: int = 0
    evidence: str = ""

    def stops(self) -> list[Attempt]:
        """What was stopped, also where it has not gone on since."""
        last = self.attempts[-1]
        return self.attempts if last.state in THROWN_STATES else self.attempts[:-1]


def read_jobs(
    facts: Facts,
    cluster: str,
    span: tuple[datetime, datetime],
    outages: tuple[Sequence[Outage], int],
) -> list[Job]:
    """Those that ran in ``span`` and go on after a stop, with the interval that is known of each;
    ``outages`` as in `checkpoints.read_checkpoints`."""
    rows = facts.rows(_RUNS, [cluster, *span])
    if not rows:
        return []
    jobs = _jobs(facts, cluster, rows, span)
    _ended_by_nodes(facts, cluster, jobs, *outages)
    _intervals(facts, cluster, rows, jobs, span[1])
    return jobs


def _jobs(
    facts: Facts, cluster: str, rows: Sequence[Mapping[str, Any]], span: tuple[datetime, datetime]
) -> list[Job]:
    found: dict[str, Job] = {}
    runs: dict[str, Attempt] = {}
    for row in rows:
        seconds = row["stop"] - row["start"] - row["suspended"]
        if seconds <= 0:
            continue
        attempt = Attempt(row["run_id"], row["start"], seconds, row["state"])
        job = found.setdefault(
            row["job_id"],
            Job(row["job_id"], (row["account"] or "", row["name"] or ""), []),
        )
        job.attempts.append(attempt)
        runs[row["run_id"]] = attempt
    for mark in facts.rows(_MARKS, [cluster, *span]):
        at = float(mark["at"])
        marked = runs.get(mark["run_id"]) or _running(found.get(mark["job_id"]), at)
        if marked is not None:
            _note(marked, mark["kind"], at)
    return list(found.values())


def _running(job: Job | None, at: float) -> Attempt | None:
    """The attempt that ran at that instant."""
    if job is None:
        return None
    inside = [each for each in job.attempts if each.start <= at <= each.start + each.seconds]
    return inside[-1] if inside else None


def _note(attempt: Attempt, kind: str, at: float) -> None:
    pairs = attempt.writes if kind.startswith("checkpoint") else attempt.reads
    if kind.endswith("_begin"):
        pairs.append((at, -1.0))
        return
    if pairs and pairs[-1][1] < 0:
        pairs[-1] = (pairs[-1][0], at)
    if kind == "checkpoint_end":
        attempt.ends.append(at)


def _ended_by_nodes(
    facts: Facts, cluster: str, jobs: Sequence[Job], outages: Sequence[Outage], origin: int
) -> None:
    """Mark the runs that ended with a failure of one of their nodes."""
    failed: dict[str, list[int]] = defaultdict(list)
    for outage in outages:
        if outage.kind is OutageKind.FAIL:
            failed[outage.node].append(outage.down_at + origin)
    ended = {each.run_id: each for job in jobs for each in job.attempts
             if each.state in THROWN_STATES or each.state == "FAILED"}  # fmt: skip
    if not failed or not ended:
        return
    for row in facts.rows(_ON, [cluster, list(ended)]):
        run = ended[row["run_id"]]
        end = run.start + run.seconds
        if any(abs(at - end) <= NEAR_S for at in failed.get(row["node"], ())):
            run.by_node = True


def _intervals(
    facts: Facts,
    cluster: str,
    rows: Sequence[Mapping[str, Any]],
    jobs: Sequence[Job],
    until: datetime,
) -> None:
    """The interval of each job with its evidence, and its class as the ledger draws it."""
    runs = {row["job_id"]: _run(row) for row in rows}  # the last of each job
    work = cast("Work", facts)  # it asks for rows only
    seen = Intervals.load(work, cluster, list(runs.values()), settings_at(work, cluster, until))
    for job in jobs:
        job.of = seen.classes.get(job.job_id, job.of)
        gaps = [b - a for each in job.attempts for a, b in pairwise(each.ends) if b > a]
        if len(gaps) >= LEAST_GAPS:
            job.every_with_cost, job.evidence = round(median_low(gaps)), Evidence.MARK.value
            continue
        found = seen.interval_of(runs[job.job_id])
        if found is not None:
            job.every_with_cost, job.evidence = max(1, round(found[0] / 1e6)), found[1]
        elif gaps:
            job.every_with_cost, job.evidence = round(median_low(gaps)), Evidence.MARK.value


def _run(row: Mapping[str, Any]) -> Run:
    return Run(row["run_id"], row["job_id"], None, row["account"], None, None, None, row["state"],
               row["start"] * 1_000_000, row["stop"] * 1_000_000, None)  # fmt: skip
