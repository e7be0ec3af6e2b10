"""Sums over time of what was held, asked for and free, without a loop over instants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import Cluster
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
    """GPU-hours blocked between each two ``edges``, of a replay."""
    # A job that no node can hold asks for nothing that is there.
    asked = gpus * (outcome.state != STATES.index(State.UNPLACEABLE))
    steps = [(outcome.jobs.eligible, asked), (first, -asked)]
    return blocked_between(outcome.cluster, steps, (first, end, gpus), edges)


def blocked_between(
    cluster: Cluster,
    asked: Sequence[tuple[NDArray[np.int64], Floats]],
    held: tuple[NDArray[np.int64], NDArray[np.int64], Floats],
    edges: Floats,
) -> Floats:
    """GPU-hours that stood free while GPUs were asked for, between each two ``edges``.

    ``asked``: instants and changes of the GPUs asked for. ``held``: start, end, GPUs of each run.
    """
    start, end, gpus = held
    away, change = _away(cluster)
    steps: list[tuple[NDArray[Any], Floats, Floats]] = [
        (when, np.zeros(len(when)), what) for when, what in asked
    ]
    steps += [
        (when, what, np.zeros(len(when)))
        for when, what in ((start, -gpus), (end, gpus), (away, change), (edges, 0 * edges))
    ]
    times = np.concatenate([np.asarray(step[0], float) for step in steps])
    order = np.argsort(times, kind="stable")
    times = times[order]
    room = cluster.total_gpus + np.cumsum(np.concatenate([step[1] for step in steps])[order])
    wanted = np.cumsum(np.concatenate([step[2] for step in steps])[order])
    rate = np.clip(np.minimum(room, wanted), 0, None)[:-1]
    total = np.concatenate([[0.0], np.cumsum(rate * np.diff(times))])
    result: Floats = np.diff(total[np.searchsorted(times, edges)]) / 3600
    return result


def _away(cluster: Cluster) -> tuple[NDArray[np.int64], Floats]:
    """Instants at which nodes go and come, with the GPUs that go (negative) and come."""
    times, change = [], []
    for outage in cluster.outages:
        size = float(cluster.gpus[cluster.index[outage.node]])
        times.append(outage.down_at)
        change.append(-size)
        if outage.up_at is not None:
            times.append(outage.up_at)
            change.append(size)
    return np.array(times, np.int64), np.array(change, float)
