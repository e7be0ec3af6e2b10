"""What the search should answer: every cause near its threshold, not the leading one only."""

from __future__ import annotations

from scheduler_advisor.diagnosis.diagnose import Diagnosis
from scheduler_advisor.goals import Goals
from scheduler_advisor.past import Past
from scheduler_advisor.search.catalogue import FAIRNESS
from scheduler_advisor.search.fairness import UNFAIR, jain, team_slowdowns

NEAR = 0.5  # of a threshold: trying is cheap, and what is advised must pay for itself


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
    return jain(list(team_slowdowns(past).values()))
