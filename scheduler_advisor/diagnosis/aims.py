"""What the search should answer: every cause near its threshold, not the leading one only."""

from __future__ import annotations

import numpy as np

from scheduler_advisor.diagnosis.diagnose import Diagnosis
from scheduler_advisor.goals import Goals
from scheduler_advisor.past import Past
from scheduler_advisor.search.catalogue import FAIRNESS

NEAR = 0.5  # of a threshold: trying is cheap, and what is advised must pay for itself
UNFAIR = 0.75  # Jain's index of the teams' slowdowns: four teams alike and one three times slower
LEAST_JOBS = 20  # of a team: below, its mean slowdown is one or two jobs


def aims(diagnosis: Diagnosis, past: Past, goals: Goals) -> frozenset[str]:
    """Names of causes, and fairness where teams fare very differently or the goals put it first."""
    found = {each.bottleneck.value for each in diagnosis.findings if each.severity >= NEAR}
    index = team_fairness(past)
    if goals.first == "fairness" or (index is not None and index < UNFAIR):
        found.add(FAIRNESS)
    return frozenset(found)


def team_fairness(past: Past) -> float | None:
    """Jain's index of the teams' mean bounded slowdowns as they really were, 1 = all alike; None
    with fewer than two teams or without real waits."""
    if past.wait_s is None:
        return None
    own = past.judged
    slow = np.maximum((past.wait_s + past.jobs.run) / np.maximum(past.jobs.run, 600), 1.0)[own]
    team = past.jobs.team.codes[own]
    counts = np.bincount(team)
    means = (np.bincount(team, weights=slow) / np.maximum(counts, 1))[counts >= LEAST_JOBS]
    if len(means) < 2:
        return None
    return float(means.sum() ** 2 / (len(means) * (means**2).sum()))
