"""What a replay shows beside its waits: where free GPUs went, over time, by size and team."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.ledger import CLASSES, Samples, sample_ledger
from scheduler_advisor.engine.outcome import STATES, Outcome, State
from scheduler_advisor.engine.parts.fluid_outcome import FluidOutcome
from scheduler_advisor.measurements.sizes import SIZE_CLASSES, size_class

Floats = NDArray[np.float64]
_SHORT_S = 10  # run times below it count as 10 s in the bounded slowdown (Feitelson 2001)
_SAMPLES = 200


def detailed(outcome: Outcome, samples: int = _SAMPLES) -> dict[str, Any]:
    """Figures that cost more than the replay's own sums, ready for JSON.

    ``gpu_hours_by_class``: the ledger's classes from evenly spaced instants, which add up to what
    is installed; ``series``: the same instants one by one, in GPUs; ``fragmentation_gpu_hours``: F
    against the replayed jobs' own typical tasks.
    """
    groups = {
        "by_size_class": _groups(outcome, _sizes(outcome), SIZE_CLASSES),
        "by_team": _groups(outcome, outcome.jobs.team.codes, outcome.jobs.team.names),
    }
    if isinstance(outcome, FluidOutcome):
        return groups | _undivided(outcome)
    taken = sample_ledger(outcome, samples)
    hours = {name: seconds / 3600 for name, seconds in taken.gpu_seconds().items()}
    return groups | {
        "samples": len(taken.at),
        "gpu_hours_by_class": hours,
        "fragmentation_gpu_hours": taken.fragmentation_gpu_s() / 3600,
        "shares": _shares(outcome, taken),
        "series": _series(taken),
    }


def _undivided(outcome: FluidOutcome) -> dict[str, Any]:
    """Exact sums where jobs move and change size, which instants of last places cannot show. What
    is not held is told apart only from nodes that are away."""
    seconds = {
        "held": outcome.held_gpu_s,
        "failed": outcome.down_gpu_s,
        "free": outcome.free_gpu_s,
    }
    if outcome.holding_gpu_s:
        seconds["kept"] = outcome.holding_gpu_s  # by victims that left, for whom they left
    return {"gpu_hours_by_class": {name: total / 3600 for name, total in seconds.items()}}


def _series(taken: Samples) -> dict[str, Any]:
    milli = taken.milli / 1000
    return {
        "at_s": taken.at.tolist(),
        "queued_jobs": taken.queued.tolist(),
        "queued_gpus": (taken.demand_milli / 1000).tolist(),
        "fragmentation_gpus": (taken.fragmentation_milli / 1000).round(6).tolist(),
        "gpus_by_class": {name: milli[:, at].tolist() for at, name in enumerate(CLASSES)},
    }


def _sizes(outcome: Outcome) -> NDArray[np.int64]:
    known, of_job = np.unique(outcome.jobs.gpus, return_inverse=True)
    rows = [SIZE_CLASSES.index(size_class(int(gpus))) for gpus in known]
    return np.array(rows, np.int64)[of_job.reshape(-1)]


def _groups(
    outcome: Outcome, of_job: NDArray[np.int64], names: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Waits, completion times and bounded slowdowns of the jobs that are done, group by group."""
    jobs, done = outcome.jobs, outcome.started
    wait = (outcome.first_start - jobs.submit)[done]
    completion = (outcome.end - jobs.submit)[done]
    slowdown = np.maximum(completion / np.maximum(jobs.run[done], _SHORT_S), 1.0)
    held = (jobs.run * gpus_of(outcome))[done]
    rows = []
    for at, name in enumerate(names):
        mine = of_job[done] == at
        if mine.any():
            row: dict[str, Any] = {"name": name or None, "jobs": int(mine.sum())}
            row["useful_gpu_hours"] = float(held[mine].sum()) / 3600
            row["wait_s"] = spread(wait[mine])
            row["completion_s"] = spread(completion[mine])
            row["bounded_slowdown"] = spread(slowdown[mine])
            rows.append(row)
    return rows


def gpus_of(outcome: Outcome) -> Floats:
    """GPUs that each job holds; a shared one in parts."""
    jobs = outcome.jobs
    return np.where(jobs.gpu_milli > 0, jobs.tasks * jobs.gpu_milli / 1000, jobs.gpus)


def spread(values: NDArray[Any]) -> dict[str, float | None]:
    """Mean, percentiles by linear interpolation, maximum; None where there is nothing."""
    if not len(values):
        return {"mean": None, "p50": None, "p95": None, "max": None}
    p50, p95 = np.percentile(values, [50, 95])
    return {
        "mean": float(values.mean()),
        "p50": float(p50),
        "p95": float(p95),
        "max": float(values.max()),
    }


def _shares(outcome: Outcome, taken: Samples) -> dict[str, Any]:
    """How far the teams' GPUs are from max-min fair shares of what was handed out, over the
    instants at which several teams want some: mean of half the sum of differences over the GPUs
    handed out (0: fair, towards 1: all to one), and of Jain's index of got over fair."""
    got, wanted = team_demand(outcome, taken.at)
    rows = []
    for at, seconds in enumerate(taken.seconds.tolist()):
        asks = wanted[:, at] > 0
        handed = float(got[asks, at].sum())
        if asks.sum() > 1 and handed > 0:
            fair = max_min(wanted[asks, at], handed)
            ratio = got[asks, at] / fair
            deviation = float(np.abs(got[asks, at] - fair).sum()) / 2 / handed
            jain = float(ratio.sum()) ** 2 / (len(ratio) * float((ratio**2).sum()))
            rows.append((seconds, deviation, jain))
    if not rows:
        return {"deviation_ratio": None, "jain_index": None, "contested_s": 0}
    weight, deviation_, jain_ = np.array(rows).T
    return {
        "deviation_ratio": float(np.average(deviation_, weights=weight)),
        "jain_index": float(np.average(jain_, weights=weight)),
        "contested_s": int(weight.sum()),
    }


def team_demand(outcome: Outcome, at: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """[team, instant]: GPUs that the team holds, and those that it holds or has queued."""
    jobs, done = outcome.jobs, outcome.started
    gpus, team = gpus_of(outcome), jobs.team.codes
    possible = outcome.state != STATES.index(State.UNPLACEABLE)
    never = np.iinfo(np.int64).max
    start = np.where(done, outcome.start, never)
    end = np.where(done, outcome.end, never)
    shape = (len(jobs.team.names), len(at) + 1)
    got, wanted = np.zeros(shape), np.zeros(shape)
    for total, since in ((got, start), (wanted, jobs.eligible)):
        np.add.at(total, (team[possible], np.searchsorted(at, since[possible])), gpus[possible])
        np.add.at(total, (team[possible], np.searchsorted(at, end[possible])), -gpus[possible])
    # Sums of thousandths leave crumbs where nothing is.
    return tuple(total.cumsum(axis=1)[:, :-1].round(6) for total in (got, wanted))  # type: ignore[return-value]


def max_min(wanted: Floats, total: float) -> Floats:
    """`total` in equal parts, nobody more than wanted, what is left to the others."""
    order = np.argsort(wanted, kind="stable")
    fair, left = np.zeros(len(wanted)), total
    for place, team in enumerate(order.tolist()):
        fair[team] = min(float(wanted[team]), left / (len(order) - place))
        left -= float(fair[team])
    return fair
