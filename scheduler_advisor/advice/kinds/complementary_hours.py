"""Small jobs of one team that hold a GPU each and work at different hours of the day.

A job is all runs of one name by one person; it takes part if it never needs two GPUs at once. What
one holds idle in an hour in which the other works is the saving: with both on one GPU it would be
that hour's work. Hours in which both are idle are left to the advice on idle sessions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np

from scheduler_advisor.advice.amount import MICRO_GPU_S_PER_HOUR, Part
from scheduler_advisor.advice.draft import Assumption, Draft, Duty, Owner
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.run import Run
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, limit, observed

RULE = rule(
    "complementary_hours",
    risk=3,
    effort="medium",
    needs=("activity", "memory"),
    busy_ratio=Threshold(0.1, "ratio", "six minutes of kernels in an hour: less is a pause"),
    busy_hours=Threshold(2, "h", "a day on which it works: less has no hours of its own"),
    min_days=Threshold(5, "d", "a working week: fewer days may agree by chance"),
    days_ratio=Threshold(0.5, "ratio", "of the window's days: a habit, not a week of it"),
    overlap_ratio=Threshold(0.1, "ratio", "a tenth of the shorter day together costs little"),
    fill_memory=Threshold(0.9, "ratio", "both stay in memory; a tenth is kept for contexts"),
    min_gpu_hours=Threshold(24, "GPU-h", "a GPU-day: less is not worth the risk"),
)

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
class _Job:
    """All runs of one name by one person; arrays by hour of the window."""

    runs: dict[str, Run] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    held: Any = None
    busy: Any = None
    profile: Any = None  # working hours by UTC hour of the day
    days: int = 0
    mem_mib: float = 0.0
    total_mib: float = 0.0

    @property
    def last(self) -> Run:
        """The run that stands for it."""
        return list(self.runs.values())[-1]


@dataclass(frozen=True, slots=True)
class _Pair:
    first: _Job
    second: _Job
    overlap: float
    parts: tuple[Part, ...]

    @property
    def micro(self) -> int:
        """What one GPU for both would win."""
        return sum(part.micro_gpu_s for part in self.parts)


def find(site: Site) -> Iterator[Draft]:
    """Pairs, the largest first; a job is in one of them at most."""
    rules = RULE.values(site.goals)
    pairs = [
        pair
        for alike in _jobs(site, rules).values()
        for place, one in enumerate(alike)
        for other in alike[place + 1 :]
        if (pair := _pair(site, one, other, rules)) is not None
    ]
    taken: set[int] = set()
    for pair in sorted(pairs, key=lambda each: (-each.micro, each.first.last.run_id)):
        both = {id(pair.first), id(pair.second)}
        if not both & taken:
            taken |= both
            yield _draft(site, pair, rules)


def alike(run: Run) -> str:
    """The name without its numbers, so that tonight's run is last night's job."""
    return re.sub(r"\d+", "#", run.name) if run.name else run.job_id


def _jobs(site: Site, rules: dict[str, float]) -> dict[tuple[Any, ...], list[_Job]]:
    """Jobs with hours of their own, by team, model and kind of node."""
    site.work.execute(_MEMORY)
    found: dict[tuple[Any, ...], _Job] = defaultdict(_Job)
    for row in site.rows(_HOURS):
        run = site.run(row["cluster"], row["run_id"])
        if run is None or site.goals.never_shared(**run.facts()):
            continue
        place = (row["cluster"], run.owner.team, row["gpu_model"], row["gpus"], row["queues"])
        job = found[*place, run.user_name, alike(run)]
        job.runs[run.run_id] = run
        job.rows.append(row)
    groups: dict[tuple[Any, ...], list[_Job]] = defaultdict(list)
    for key, job in found.items():
        _measure(site, job, rules)
        if _has_hours(site, job, rules):
            groups[key[:5]].append(job)
    return groups


def _measure(site: Site, job: _Job, rules: dict[str, float]) -> None:
    """Fill the arrays from the rows."""
    hours = int(site.window.duration_s // 3600) + 1
    job.held, work, of_day = np.zeros(hours), np.zeros(hours), np.zeros(hours, int)
    for row in job.rows:
        at = _hour(site, row)
        job.held[at] += row["held"]
        work[at] += row["busy"]
        of_day[at] = row["hour"].hour
    job.busy = work >= rules["busy_ratio"] * MICRO_GPU_S_PER_HOUR
    job.profile = np.bincount(of_day[job.busy], minlength=24)
    job.days = len({row["day"] for row in job.rows if job.busy[_hour(site, row)]})
    job.mem_mib = max(row["mem_mib"] for row in job.rows)
    job.total_mib = min(row["total_mib"] for row in job.rows)


def _has_hours(site: Site, job: _Job, rules: dict[str, float]) -> bool:
    days = site.window.duration_s / 86_400
    return bool(
        job.held.max() <= _TWO_AT_ONCE
        and job.days >= max(rules["min_days"], rules["days_ratio"] * days)
        and job.profile.sum() >= rules["busy_hours"] * job.days
    )


def _pair(site: Site, one: _Job, other: _Job, rules: dict[str, float]) -> _Pair | None:
    """The two on one GPU, or None where they do not fit or would win too little."""
    together = float(np.minimum(one.profile, other.profile).sum())
    overlap = together / min(one.profile.sum(), other.profile.sum())
    room = rules["fill_memory"] * min(one.total_mib, other.total_mib)
    if overlap > rules["overlap_ratio"] or one.mem_mib + other.mem_mib > room:
        return None
    of_one, of_other = _idle_beside(site, one, other), _idle_beside(site, other, one)
    if sum(p.micro_gpu_s for p in of_one) < sum(p.micro_gpu_s for p in of_other):
        one, other = other, one
    pair = _Pair(one, other, overlap, (*of_one, *of_other))
    return pair if pair.micro >= rules["min_gpu_hours"] * MICRO_GPU_S_PER_HOUR else None


def _idle_beside(site: Site, holder: _Job, worker: _Job) -> list[Part]:
    """What ``holder`` held idle in the hours in which ``worker`` worked."""
    return [
        site.part(row, row["idle"], claim=f"run:{row['cluster']}/{row['run_id']}")
        for row in holder.rows
        if row["idle"] and worker.busy[_hour(site, row)] and not holder.busy[_hour(site, row)]
    ]


def _hour(site: Site, row: dict[str, Any]) -> int:
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


def _draft(site: Site, pair: _Pair, rules: dict[str, float]) -> Draft:
    one, other = pair.first.last, pair.second.last
    runs = [*pair.first.runs.values(), *pair.second.runs.values()]
    command = site.command("job", one.job_id)
    memory = pair.first.mem_mib + pair.second.mem_mib
    total = min(pair.first.total_mib, pair.second.total_mib)
    names = sorted(f"{alike(run)} of {run.user_name}" for run in (one, other))
    same = one.user_name == other.user_name
    hours = spans(pair.second.profile)
    return Draft(
        kind=RULE.kind, cluster=one.cluster, subject=f"{names[0]} and {names[1]}",
        owner=Owner(team=one.owner.team, user=one.user_name if same else None), duty=Duty.TEAM,
        params={"first": one.label, "first_user": one.user_name or "?",
                "first_hours": spans(pair.first.profile), "second": other.label,
                "second_user": other.user_name or "?", "second_hours": hours,
                "gpu_model": one.gpu_model or "GPU", "mem_gib": memory / 1024,
                "total_gib": total / 1024, "overlap": pair.overlap},
        parts=pair.parts, current=site.held_parts(runs),
        figures=(
            observed("first_days", pair.first.days, Unit.DAYS, command),
            observed("second_days", pair.second.days, Unit.DAYS,
                     site.command("job", other.job_id)),
            observed("working_together", pair.overlap, Unit.RATIO, command),
            observed("idle_beside", pair.micro / MICRO_GPU_S_PER_HOUR, Unit.GPU_HOURS, command),
            observed("memory_of_both", memory, Unit.MIB, command),
            limit("gpu_memory", total, Unit.MIB, command),
        ),
        examples=[one.job_id, other.job_id], samples=len(pair.first.rows) + len(pair.second.rows),
        assumptions=(
            Assumption("same_hours", "", default=True),
            Assumption("memory_room", f"{1 - rules['fill_memory']:.0%}", default=True),
        ),
        alternatives=("by_hour", "mig"), commands=_commands(hours[:2], command),
    )  # fmt: skip


def _commands(begin: str, verify: str) -> dict[str, str]:
    """One GPU of a node in two shards; of pods, the device plugin's time slices; or turns."""
    return {
        "apply": (
            "# gres.conf of one node, beside its GPUs; slurm.conf: GresTypes=gpu,shard\n"
            "Name=shard Count=2 File=/dev/nvidia0    # NodeName=... Gres=...,shard:2\n"
            "# both jobs: --gres=shard:1 instead of --gres=gpu:1\n"
            "# Kubernetes, the device plugin's config for one node:\n"
            "# sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}\n"
            f"# or without sharing: end the one, and start the other with --begin={begin}:00 (UTC)"
        ),
        "verify": verify,
        "rollback": "# take the shard (or the sharing) out again; both jobs: --gres=gpu:1",
    }
