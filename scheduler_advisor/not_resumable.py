"""Which jobs preemption would have stopped although nothing shows that they go on afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.past import Past, gpus_held
from scheduler_advisor.search.alter import altered
from scheduler_advisor.search.catalogue import Part

if TYPE_CHECKING:
    from scheduler_advisor.search.bench import Trial
    from scheduler_advisor.search.candidate import Candidate
    from scheduler_advisor.workers import Workers

NAMED = 20
STOPS = (Part.PREEMPTION, Part.QUOTA)  # for work that is more important, or has a better claim


@dataclass(frozen=True, slots=True)
class StoppedJob:
    """A job that would have been stopped ``stops`` times and begun again from nothing, at a loss
    of ``lost_gpu_hours``."""

    job_id: str
    gpus: float
    stops: int
    lost_gpu_hours: float


@dataclass(frozen=True, slots=True)
class NotResumable:
    """What stopping any lower job would have cost in the window those that show no sign that they
    resume; ``jobs`` names the dearest. The change that is advised leaves them alone."""

    change: str
    count: int
    lost_gpu_hours: float
    jobs: tuple[StoppedJob, ...]


def not_resumable(
    past: Past, candidates: Sequence[Candidate], workers: Workers
) -> tuple[NotResumable, ...]:
    """For every candidate that stops jobs: who would have been hit without the evidence."""
    stopping = [
        each
        for each in candidates
        if any(change.disrupts and change.part in STOPS for change in each.changes)
    ]
    trials = {each.trial: each.name for each in stopping}
    found = {trials[trial]: seen for trial, seen in workers.each(past, hit, list(trials))}
    return tuple(_named(each.name, found[each.name]) for each in stopping)


def hit(past: Past, trial: Trial) -> list[StoppedJob]:
    """A replay in which any job may be stopped; runs in whatever process it is sent to."""
    able = past.jobs.preemptible > 0
    jobs = past.jobs.changed(
        preemptible=np.ones(len(past.jobs), np.int64),
        checkpoint_every=np.where(able, past.jobs.checkpoint_every, 0),
    )
    made = altered(replace(past, jobs=jobs), trial.world)
    jobs = made.jobs
    outcome = simulate(jobs, made.cluster, trial.policy)
    lost = (outcome.lost_s + outcome.overhead_s) * gpus_held(jobs) / 3600
    own = np.flatnonzero((outcome.preemptions > 0) & ~able & past.judged)
    own = own[np.argsort(-lost[own], kind="stable")]
    return [
        StoppedJob(str(jobs.job_id[job]), float(gpus_held(jobs)[job]),
                   int(outcome.preemptions[job]), float(lost[job]))
        for job in own.tolist()
    ]  # fmt: skip


def _named(change: str, found: Sequence[StoppedJob]) -> NotResumable:
    return NotResumable(
        change, len(found), sum(job.lost_gpu_hours for job in found), tuple(found[:NAMED])
    )
