"""Small jobs that hold a GPU each and work at different hours of the day.

Two of one team are advised to share; two teams are told what they could win and with whom.

A job is all runs of one name by one person; it takes part if it never needs two GPUs at once. What
one holds idle in an hour in which the other works is the saving: with both on one GPU it would be
that hour's work. Hours in which both are idle are left to the advice on idle sessions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler_advisor.advice.amount import MICRO_GPU_S_PER_HOUR, Part
from scheduler_advisor.advice.draft import Assumption, Draft, Duty, NotRecommended, Owner
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.advice.working_hours import Job, alike, hour_of, jobs_with_hours, spans
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


@dataclass(frozen=True, slots=True)
class _Pair:
    first: Job
    second: Job
    overlap: float
    micro: float  # what one GPU for both would win


def find(site: Site) -> Iterator[Draft | NotRecommended]:
    """Pairs, the largest first; a job is in one of them at most."""
    rules = RULE.values(site.goals)
    groups = jobs_with_hours(site, rules)
    taken: set[int] = set()
    for pair in _largest([pair for own in groups.values() for pair in _pairs(own, rules)], taken):
        yield _draft(site, pair, rules)
    places: dict[tuple[Any, ...], list[Job]] = defaultdict(list)
    for (cluster, _team, *place), own in groups.items():
        places[cluster, *place] += [job for job in own if id(job) not in taken]
    strangers = [pair for own in places.values() for pair in _pairs(own, rules, strangers=True)]
    yield from _told(site, list(_largest(strangers, taken)))


def _pairs(jobs: list[Job], rules: dict[str, float], *, strangers: bool = False) -> Iterator[_Pair]:
    """Those of ``jobs`` that fit; ``strangers``: of two teams."""
    profiles = np.array([job.profile for job in jobs])
    for place, one in enumerate(jobs):
        others = jobs[place + 1 :]
        together = np.minimum(profiles[place + 1 :], one.profile).sum(axis=1)
        for other, hours in zip(others, together.tolist(), strict=True):
            if strangers and one.last.owner.team == other.last.owner.team:
                continue
            pair = _pair(one, other, hours, rules)
            if pair is not None:
                yield pair


def _largest(pairs: Sequence[_Pair], taken: set[int]) -> Iterator[_Pair]:
    """The largest first, of jobs that no other pair has ``taken``."""
    for pair in sorted(pairs, key=lambda each: (-each.micro, each.first.last.run_id)):
        both = {id(pair.first), id(pair.second)}
        if not both & taken:
            taken |= both
            yield pair


def _told(site: Site, pairs: Sequence[_Pair]) -> Iterator[NotRecommended]:
    """For each cluster the largest pair of two teams, and how many there are."""
    clusters: dict[str, list[_Pair]] = defaultdict(list)
    for pair in pairs:
        clusters[pair.first.last.cluster].append(pair)
    for cluster, own in clusters.items():
        one, other = own[0].first, own[0].second
        weekly = sum(pair.micro for pair in own) / MICRO_GPU_S_PER_HOUR / site.window.weeks
        params = {
            "first": one.last.label, "first_team": one.last.owner.team or "?",
            "first_hours": spans(one.profile), "second": other.last.label,
            "second_team": other.last.owner.team or "?", "second_hours": spans(other.profile),
            "gpu_model": one.last.gpu_model or "GPU", "pairs": len(own), "hours": weekly,
        }  # fmt: skip
        yield NotRecommended(RULE.kind, cluster, "two_teams", params)


def _pair(one: Job, other: Job, together: float, rules: dict[str, float]) -> _Pair | None:
    """The two on one GPU, or None where they do not fit or would win too little; ``together``:
    hours in which both work."""
    overlap = together / min(one.profile.sum(), other.profile.sum())
    room = rules["fill_memory"] * min(one.total_mib, other.total_mib)
    if overlap > rules["overlap_ratio"] or one.mem_mib + other.mem_mib > room:
        return None
    of_one = float(one.idle[_beside(one, other)].sum())
    of_other = float(other.idle[_beside(other, one)].sum())
    if of_one + of_other < rules["min_gpu_hours"] * MICRO_GPU_S_PER_HOUR:
        return None
    first, second = (one, other) if of_one >= of_other else (other, one)
    return _Pair(first, second, overlap, of_one + of_other)


def _beside(holder: Job, worker: Job) -> Any:
    """The hours in which ``worker`` worked and ``holder`` did not."""
    return worker.busy & ~holder.busy


def _parts(site: Site, holder: Job, worker: Job) -> list[Part]:
    """What ``holder`` held idle in these hours."""
    hours = _beside(holder, worker)
    return [
        site.part(row, row["idle"], claim=f"run:{row['cluster']}/{row['run_id']}")
        for row in holder.rows
        if row["idle"] and hours[hour_of(site, row)]
    ]


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
        parts=[*_parts(site, pair.first, pair.second), *_parts(site, pair.second, pair.first)],
        current=site.held_parts(runs),
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
            f"# or without sharing: end the one, and start the other at {begin}:00 UTC\n"
            "# (sbatch --begin, in the time zone of the cluster)"
        ),
        "verify": verify,
        "rollback": "# take the shard (or the sharing) out again; both jobs: --gres=gpu:1",
    }
