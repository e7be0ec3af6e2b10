"""The simulator's core: pure, exact, fast. `simulate(jobs, cluster, policy)` is its one verb."""

from scheduler_advisor.engine.cluster import UNLIMITED, Cluster
from scheduler_advisor.engine.errors import (
    ClusterError,
    EngineError,
    JobsError,
    PolicyError,
    SweepError,
)
from scheduler_advisor.engine.hashes import VERSION
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.limits import (
    Limit,
    Outage,
    OutageKind,
    Partition,
    Reservation,
    Scope,
)
from scheduler_advisor.engine.outcome import Deadlock, Outcome, State
from scheduler_advisor.engine.policy import (
    Backfill,
    Order,
    Placement,
    Policy,
    Preemption,
    Ties,
)
from scheduler_advisor.engine.policy_text import PRESETS, from_toml, preset, to_toml
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.engine.warm import warm

__all__ = [
    "PRESETS",
    "UNLIMITED",
    "VERSION",
    "Backfill",
    "Cluster",
    "ClusterError",
    "Deadlock",
    "EngineError",
    "Jobs",
    "JobsError",
    "Limit",
    "Order",
    "Outage",
    "OutageKind",
    "Outcome",
    "Partition",
    "Placement",
    "Policy",
    "PolicyError",
    "Preemption",
    "Reservation",
    "Scope",
    "State",
    "SweepError",
    "Ties",
    "from_toml",
    "preset",
    "simulate",
    "to_toml",
    "warm",
]
