"""Jobs that need one GPU at a time, with the hours of the day at which they work.

A job is all runs of one name, its numbers apart, by one person on one kind of node.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np

from scheduler_advisor.advice.amount import MICRO_GPU_S_PER_HOUR
from scheduler_advisor.advice.run import Run
from scheduler_advisor.advice.site import Site

# One row = a run on one whole GPU with its largest memory use and its GPU's size.
_MEMORY = """
CREATE OR REPLACE TEMP TABLE advice_turn AS
SELECT s.cluster, s.run_id, max(s.mem_used_mib) AS mem_mib, max(s.mem_total_mib) AS total_mib
FROM sample s SEMI JOIN advice_run r ON r.cluster = s.cluster AND r.run_id = s.run_id
  AND r.gpus = 1
WHERE s.mig_uuid IS NULL AND s.mem_used_mib IS NOT NULL AND s.mem_total_mib > 0
GROUP BY s.cluster, s.run_id
"""
# One row = such a run's held time in one hour on a node that serves these queues.
_HOURS = """
WITH class AS (SELECT cluster, node, arg_max(gpus, valid_from) AS gpus,
    arg_max(list_sort(coalesce(partitions, []))::VARCHAR, valid_from) AS queues
  FROM node GROUP BY cluster, node)
SELECT c.cluster, c.run_id, c.node, c.gpu_model, n.gpus, n.queues, c.hour, c.hour::DATE AS day,
  c.price, c.cash, t.mem_mib, t.total_mib, sum(c.used + c.lost)::BIGINT AS busy,
  sum(c.allocated_idle)::BIGINT AS idle, sum(c.used + c.lost + c.allocated_idle
    + c.allocated_unmeasured + c.failed_held)::BIGINT AS held
FROM advice_cell c JOIN advice_turn t ON t.cluster = c.cluster AND t.run_id = c.run_id
JOIN class n ON n.cluster = c.cluster AND n.node = c.node
GROUP BY ALL HAVING held > 0 ORDER BY c.cluster, c.hour, c.run_id
"""
_TWO_AT_ONCE = 1.02 * MICRO_GPU_S_PER_HOUR  # samples' steps do not end with the hour


@dataclass(slots=True)
class Job:
    """All runs of one name by one person; arrays by hour of the window."""

    runs: dict[str, Run] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    held: Any = None
    idle: Any = None
    busy: Any = None
    profile: Any = None  # working hours by UTC hour of the day
    days: int = 0
    mem_mib: float = 0.0
    total_mib: float = 0.0

    @property
    def last(self) -> Run:
        """The run that stands for it."""
        return list(self.runs.values())[-1]


def jobs_with_hours(site: Site, rules: Mapping[str, float]) -> dict[tuple[Any, ...], list[Job]]:
    """Those with hours of their own by the thresholds, by team, model and kind of node."""
    site.work.execute(_MEMORY)
    found: dict[tuple[Any, ...], Job] = defaultdict(Job)
    for row in site.rows(_HOURS):
        run = site.run(row["cluster"], row["run_id"])
        if run is None or site.goals.never_shared(**run.facts()):
            continue
        place = (row["cluster"], run.owner.team, row["gpu_model"], row["gpus"], row["queues"])
        job = found[*place, run.user_name, alike(run)]
        job.runs[run.run_id] = run
        job.rows.append(row)
    groups: dict[tuple[Any, ...], list[Job]] = defaultdict(list)
    for key, job in found.items():
        _measure(site, job, rules)
        if _has_hours(site, job, rules):
            groups[key[:5]].append(job)
    return groups


def _measure(site: Site, job: Job, rules: Mapping[str, float]) -> None:
    """Fill the arrays from the rows."""
    hours = int(site.window.duration_s // 3600) + 1
    job.held, job.idle, work = np.zeros(hours), np.zeros(hours), np.zeros(hours)
    of_day = np.zeros(hours, int)
    for row in job.rows:
        at = hour_of(site, row)
        job.held[at] += row["held"]
        job.idle[at] += row["idle"]
        work[at] += row["busy"]
        of_day[at] = row["hour"].hour
    job.busy = work >= rules["busy_ratio"] * MICRO_GPU_S_PER_HOUR
    job.profile = np.bincount(of_day[job.busy], minlength=24)
    job.days = len({row["day"] for row in job.rows if job.busy[hour_of(site, row)]})
    job.mem_mib = max(row["mem_mib"] for row in job.rows)
    job.total_mib = min(row["total_mib"] for row in job.rows)


def _has_hours(site: Site, job: Job, rules: Mapping[str, float]) -> bool:
    days = site.window.duration_s / 86_400
    return bool(
        job.held.max() <= _TWO_AT_ONCE
        and job.days >= max(rules["min_days"], rules["days_ratio"] * days)
        and job.profile.sum() >= rules["busy_hours"] * job.days
    )


def alike(run: Run) -> str:
    """The name without its numbers, so that tonight's run is last night's job."""
    return re.sub(r"\d+", "#", run.name) if run.name else run.job_id


def hour_of(site: Site, row: Mapping[str, Any]) -> int:
    """The place of a row's hour in the window."""
    return int((row["hour"] - site.window.since) // timedelta(hours=1))


def spans(profile: Sequence[int]) -> str:
    """The hours of the day in which it works at least half as often as in its busiest: 22-06."""
    at_work = [count * 2 >= max(profile) for count in profile]
    if all(at_work):
        return "00-24"
    begins = [hour for hour in range(24) if at_work[hour] and not at_work[hour - 1]]
    found = []
    for begin in begins:
        length = next(n for n in range(1, 25) if not at_work[(begin + n) % 24])
        found.append(f"{begin:02}-{(begin + length) % 24:02}")
    return ", ".join(found)
