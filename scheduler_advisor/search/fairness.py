"""How alike the teams of a site really fared: mean bounded slowdowns, and Jain's index of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler_advisor.past import Past

UNFAIR = 0.75  # Jain's index of the teams' slowdowns: four teams alike and one three times slower
LEAST_JOBS = 20  # of a team: below, its mean slowdown is one or two jobs
SHORT_S = 600  # shorter jobs count as so long: a minute's wait of a minute's job is no starvation


def team_slowdowns(past: Past) -> dict[int, float]:
    """Mean bounded slowdown by team (its code), as it really was; empty without real waits."""
    if past.wait_s is None:
        return {}
    own, run = past.judged, past.jobs.run
    slow = np.maximum((past.wait_s + run) / np.maximum(run, SHORT_S), 1.0)[own]
    team = past.jobs.team.codes[own]
    counts = np.bincount(team)
    means = np.bincount(team, weights=slow) / np.maximum(counts, 1)
    return {code: float(means[code]) for code in np.flatnonzero(counts >= LEAST_JOBS).tolist()}


def jain(values: Sequence[float]) -> float | None:
    """Jain's index (Jain, Chiu, Hawe 1984), 1 = all alike; None with fewer than two."""
    if len(values) < 2:
        return None
    means = np.asarray(values)
    return float(means.sum() ** 2 / (len(means) * (means**2).sum()))
