"""What no driver carries out, or would carry out without end, is refused, never ignored."""

from __future__ import annotations

from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.live.settings import Reach, Reclaim
from scheduler_advisor.engine.policy import Placement, Policy, Preemption


def refuse_unwired(policy: Policy) -> None:
    """Raises PolicyError where a rule of the network meets a placement that does not look at it,
    or where `may_never_end`. A job's own `topology` column is a wish that only placement topology
    hears."""
    if policy.topology.level and policy.placement is not Placement.TOPOLOGY:
        raise PolicyError("policy: topology.level goes with placement = topology")
    if may_never_end(policy):
        raise PolicyError(
            "policy: preemption = priority with preemption.reach = cluster beside quota.reclaim:"
            " what a queue reclaims could be taken back by priority and reclaimed again, without"
            " end; set preemption.reach=queue, or preemption.max_per_job to 1 or more"
        )


def may_never_end(policy: Policy) -> bool:
    """Whether two rules may stop each other's jobs in turn. A guard by the hour only slows that
    down: a job longer than its turn never ends."""
    return (
        policy.preemption is Preemption.PRIORITY
        and policy.eviction.reach is Reach.CLUSTER
        and policy.eviction.max_per_job == 0
        and policy.quota.reclaim is not Reclaim.NONE
    )
