"""Which parts of a policy a replay carries out; the rest is refused, never ignored."""

from __future__ import annotations

from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.parts.settings import PARTS
from scheduler_advisor.engine.policy import Placement, Policy


def refuse_unwired(policy: Policy) -> None:
    """Raises PolicyError where the policy asks for a part that the drivers do not know yet."""
    for name, cls in PARTS.items():
        if getattr(policy, name) != cls():
            raise PolicyError(f"policy: {name}.* is not there yet in a replay; leave it out")
    if policy.placement is Placement.TOPOLOGY:
        raise PolicyError("policy: placement topology is not there yet in a replay")
