"""What a replay costs by what it did: the same on every machine, at every hour.

How many draws a candidate gets decides its interval, so it may not hang on a clock: the same store
would be given other figures on a busy machine. The seconds are those of one core, fitted to
replays of 100,000 jobs on 1,250 nodes: 0.2 to 1.2 s by counters, 0.03 to 1.4 s measured.
"""

from __future__ import annotations

from scheduler_advisor.engine.outcome import Outcome
from scheduler_advisor.engine.parts.driver import driver_of
from scheduler_advisor.engine.prepare import PLANNED

EVENT_S, EVENT_NODE_S = 0.5e-6, 0.4e-9
SHADOW_S, SHADOW_NODE_S = 1e-6, 3e-9  # a promise to the head looks at every node
LOOK_S = 3e-9  # a job passed over
PLAN_S = 3e-5  # a job placed in a plan of all nodes
PLAIN_EVENT_S, PLAIN_LOOK_S = 2e-4, 5e-6


def counted_s(outcome: Outcome) -> float:
    """About how many seconds of one core the replay takes, from its counters alone."""
    nodes, policy = len(outcome.cluster), outcome.policy
    if driver_of(outcome.jobs, policy).plain:
        return outcome.events * PLAIN_EVENT_S + outcome.examined * PLAIN_LOOK_S
    planned = policy.backfill in PLANNED
    look = PLAN_S if planned and nodes > 1 else LOOK_S
    return (
        outcome.events * (EVENT_S + nodes * EVENT_NODE_S)
        + outcome.shadows * (SHADOW_S + nodes * SHADOW_NODE_S)
        + outcome.examined * look
    )
