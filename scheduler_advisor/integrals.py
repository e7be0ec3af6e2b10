"""Sums over time of what was held, asked for and free, without a loop over instants."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.outcome import STATES, Outcome, State

Floats = NDArray[np.float64]


def integral(since: NDArray[np.int64], weight: Floats, at: Floats) -> Floats:
    """At each instant ``t`` of ``at``: the sum of ``weight x max(0, t - since)``."""
    order = np.argsort(since, kind="stable")
    moments, weights = since[order].astype(float), weight[order]
    place = np.searchsorted(moments, at, side="right")
    total = np.concatenate([[0.0], np.cumsum(weights)])[place]
    offset = np.concatenate([[0.0], np.cumsum(weights * moments)])[place]
    result: Floats = total * at - offset
    return result


def blocked_hours(
    outcome: Outcome, first: NDArray[np.int64], end: NDArray[np.int64], gpus: Floats, edges: Floats
) -> Floats:
    """GPU-hours blocked between each two ``edges``."""
    jobs, cluster = outcome.jobs, outcome.cluster
    possible = outcome.state != STATES.index(
        State.UNPLACEABLE
    )  # a job that no node can hold asks for nothing that is there
    free, away = _away(outcome)
    steps = (
        (first, -gpus, -gpus * possible),
        (end, gpus, np.zeros(len(gpus))),
        (jobs.eligible, np.zeros(len(gpus)), gpus * possible),
        (free, away, np.zeros(len(away))),
        (edges, np.zeros(len(edges)), np.zeros(len(edges))),
    )
    times = np.concatenate([np.asarray(step[0], float) for step in steps])
    order = np.argsort(times, kind="stable")
    times = times[order]
    room = cluster.total_gpus + np.cumsum(np.concatenate([step[1] for step in steps])[order])
    asked = np.cumsum(np.concatenate([step[2] for step in steps])[order])
    rate = np.clip(np.minimum(room, asked), 0, None)[:-1]
    total = np.concatenate([[0.0], np.cumsum(rate * np.diff(times))])
    at = total[np.searchsorted(times, edges)]
    return np.diff(at) / 3600


def _away(outcome: Outcome) -> tuple[NDArray[np.int64], Floats]:
    """Instants at which nodes go and come, with the GPUs that go (negative) and come."""
    cluster = outcome.cluster
    times, change = [], []
    for outage in cluster.outages:
        size = float(cluster.gpus[cluster.index[outage.node]])
        times.append(outage.down_at)
        change.append(-size)
        if outage.up_at is not None:
            times.append(outage.up_at)
            change.append(size)
    return np.array(times, np.int64), np.array(change, float)
