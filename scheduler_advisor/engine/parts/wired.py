"""What no driver carries out is refused, never ignored."""

from __future__ import annotations

from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.policy import Placement, Policy


def refuse_unwired(policy: Policy) -> None:
    """Raises PolicyError where a rule of the network meets a placement that does not look at it.
    A job's own `topology` column is a wish that only placement topology hears."""
    if policy.topology.level and policy.placement is not Placement.TOPOLOGY:
        raise PolicyError("policy: topology.level goes with placement = topology")
