"""The figures of one replay that people compare policies by."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.blast import blast_radius
from scheduler_advisor.engine.outcome import STATES, Outcome
from scheduler_advisor.engine.parts.communication import by_job, communication, uplink_load
from scheduler_advisor.engine.parts.driver import driver_of
from scheduler_advisor.engine.parts.fluid_outcome import FluidOutcome
from scheduler_advisor.engine.parts.levels import tree_of
from scheduler_advisor.readers.communication import Origin
from scheduler_advisor.readers.jobs import JobsRead
from scheduler_advisor.replay_detail import gpus_of, spread
from scheduler_advisor.stops_summary import stops

_SHORT_S = 10  # run times below it count as 10 s in the bounded slowdown (Feitelson 2001)


def summarised(outcome: Outcome, *, read: JobsRead | None = None) -> dict[str, Any]:
    """Counts, distributions of wait, completion time and bounded slowdown, and cluster totals.

    Percentiles interpolate linearly. A figure that no job gives is None. ``occupancy_ratio``: held
    over installed GPU-seconds from the first submit to the last end; ``goodput_ratio``: the part of
    it in which finished jobs got on with their work.
    """
    jobs, done = outcome.jobs, outcome.started
    wait = outcome.wait
    end = outcome.end[done]
    completion = end - jobs.submit[done]
    run = np.maximum(jobs.run[done], _SHORT_S)
    slowdown = np.maximum(completion / run, 1.0)
    first = int(jobs.submit.min()) if len(jobs) else 0
    makespan = int(end.max()) - first if len(end) else None
    installed = None if not makespan else outcome.cluster.total_gpus * makespan
    # A replica of a service is of use while it runs, however late it started.
    worked = np.where(jobs.service[done] > 0, end - outcome.start[done], jobs.run[done])
    useful = float((worked * gpus_of(outcome)[done]).sum())
    return {
        "jobs": _counts(outcome, read),
        "wait_s": spread(wait),
        "completion_s": spread(completion),
        "bounded_slowdown": spread(slowdown),
        "makespan_s": makespan,
        "installed_gpu_hours": None if installed is None else installed / 3600,
        "held_gpu_hours": outcome.held_gpu_s / 3600,
        "useful_gpu_hours": useful / 3600,
        "occupancy_ratio": None if installed is None else outcome.held_gpu_s / installed,
        "goodput_ratio": None if installed is None else useful / installed,
        "preemptions": int(outcome.preemptions.sum()),
        "lost_gpu_hours": float((outcome.lost_s * gpus_of(outcome)).sum()) / 3600,
        **stops(outcome, spread),
        "deadlocks": len(outcome.deadlocks),
        "migrations": int(migrations_of(outcome).sum()),
        "blast_radius": _blast(outcome),
        **_communication(outcome),
        **_origins(outcome, read),
        **_changes(outcome),
        "observed_wait_s": _observed(read),
        **_driver(outcome),
    }


def _driver(outcome: Outcome) -> dict[str, Any]:
    """Which driver replayed, and what asked for the slow one."""
    chosen = driver_of(outcome.jobs, outcome.policy)
    return {"driver": chosen.name, "driver_because": list(chosen.because)}


def migrations_of(outcome: Outcome) -> NDArray[np.int64]:
    """How often each job was moved while it ran."""
    if isinstance(outcome, FluidOutcome):
        return outcome.migrations
    return np.zeros(len(outcome.jobs), np.int64)


def _blast(outcome: Outcome) -> dict[str, Any] | None:
    """What one failure would take down at the instant at which most GPUs are in use."""
    done = np.flatnonzero(outcome.started)
    if not len(done):
        return None
    held = gpus_of(outcome)[done]
    times = np.concatenate((outcome.start[done], outcome.end[done]))
    change = np.concatenate((held, -held))
    order = np.lexsort((change, times))  # at one instant those who end come first
    at = int(times[order][np.argmax(np.cumsum(change[order]))])
    return {"at": at, **asdict(blast_radius(outcome, at))}


def _communication(outcome: Outcome) -> dict[str, Any]:
    """All-reduce time where the policy lets the network stretch run times (topology.slowdown)."""
    if outcome.slow_ppm is None:
        return {}
    told = communication(outcome)
    total = told.all_reduce_gpu_s
    leaves, load, capacity = uplink_load(outcome)
    names = dict(zip(tree_of(outcome.cluster).leaf.tolist(), outcome.cluster.leaf, strict=True))
    return {
        "all_reduce_gpu_hours": total / 3600,
        "all_reduce_penalty_gpu_hours": told.penalty_gpu_s / 3600,
        "all_reduce_on_defaults_ratio": told.on_defaults_gpu_s / total if total else 0.0,
        "slowdown_by_network": spread(outcome.slow_ppm[outcome.started] / 1e6),
        "busiest_uplink_ratio": float((load / capacity[:, None]).max()) if load.size else 0.0,
        "uplink_gb_s_by_hour": load.sum(axis=0).round(6).tolist(),
        "uplinks": [
            {
                "leaf": names[leaf] or None,
                "mean_gb_s": float(load[at].mean()),
                "max_gb_s": float(load[at].max()),
                "capacity_gb_s": float(capacity[at]),
            }
            for at, leaf in enumerate(leaves.tolist())
        ],
    }


def _origins(outcome: Outcome, read: JobsRead | None) -> dict[str, Any]:
    """What the communication fractions rest on, class by class and in all; `penalty`: what better
    places could win."""
    if outcome.slow_ppm is None or read is None or read.communication is None:
        return {}
    known, (spent, added, _) = read.communication, by_job(outcome)
    ids = [str(name) for name in outcome.jobs.job_id]
    origin = np.array([known.origin(job_id) for job_id in ids])
    of_class = np.array([known.of_job.get(job_id, -1) for job_id in ids], np.int64)
    total = added.sum()
    return {
        "all_reduce_penalty_by_origin_ratio": {
            str(one): float(added[origin == one].sum() / total) if total else 0.0 for one in Origin
        },
        "communication_classes": [
            {
                "user": one.user,
                "name": one.name,
                "gpus": one.gpus,
                "fraction": one.fraction,
                "origin": str(one.origin),
                "runs": one.runs,
                "all_reduce_gpu_hours": float(spent[of_class == at].sum()) / 3600,
                "penalty_gpu_hours": float(added[of_class == at].sum()) / 3600,
            }
            for at, one in enumerate(known.classes)
            if (of_class == at).any()
        ],
    }


def _changes(outcome: Outcome) -> dict[str, Any]:
    """What the parts did that change jobs while they run."""
    if not isinstance(outcome, FluidOutcome):
        return {}
    return {
        "resizes": int(outcome.resizes.sum()),
        "passes_of_moves": outcome.passes_of_moves,
        "paused_gpu_hours": outcome.paused_gpu_s / 3600,
        "short_replica_minutes": outcome.short_replica_min,
        "stretched_s": spread(outcome.stretched_s[outcome.started]),
    }


def _counts(outcome: Outcome, read: JobsRead | None) -> dict[str, Any]:
    states = np.bincount(outcome.state, minlength=len(STATES))
    counts: dict[str, Any] = {str(state): int(states[i]) for i, state in enumerate(STATES)}
    if read is not None:
        counts = {"read": read.kept, "skipped": dict(read.dropped), **counts}
    return counts


def _observed(read: JobsRead | None) -> dict[str, float | None] | None:
    if read is None or read.observed_wait_s is None:
        return None
    return spread(read.observed_wait_s)
