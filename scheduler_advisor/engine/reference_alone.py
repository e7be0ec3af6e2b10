"""Which jobs of the reference could never run, even with the cluster to themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler_advisor.engine.parts.reference_network import never_in_a_domain
from scheduler_advisor.engine.policy import Placement, Ties
from scheduler_advisor.engine.reference_world import FULL, Job, Space, place

if TYPE_CHECKING:
    from scheduler_advisor.engine.reference import World


def never(world: World, job: Job) -> bool:
    """Too big for the empty cluster, or over a limit that binds it alone."""
    spaces = {node: world.spaces[node] for node in job.nodes}
    tasks = [need for need in job.needs if not need.rest]
    room = [space.count(tasks[0]) for space in spaces.values()] if tasks else []
    if sum(min(one, 1) if job.distinct else one for one in room) < len(tasks):
        return True
    if not side_by_side(world, job, spaces) or never_in_a_domain(job):
        return True
    if (
        not world.cluster.total_gpus * FULL
        - sum(need.gpus * FULL + need.milli for need in job.needs)
        >= world.cluster.headroom_gpus * FULL
    ):
        return True
    if name := world.jobs.reservation[job.index]:
        rule = next((r for r in world.cluster.reservations if r.name == name), None)
        if rule is None or rule.end_at - rule.start_at < job.limit:
            return True
    return any(world._over(limit, job) for limit in world.cluster.limits)


def side_by_side(world: World, job: Job, spaces: dict[int, Space]) -> bool:
    """Does a job of tasks and a rest fit on the empty cluster, all of them side by side? As the
    policy would place it; where chance or the network decides, if there is any way at all."""
    rest = next((need for need in job.needs if need.rest), None)
    if rest is None:
        return True
    counted = world.policy.placement in (Placement.RANDOM, Placement.TOPOLOGY)
    counted |= world.policy.placement_ties is Ties.RANDOM and job.scoring is not None
    if not counted:
        empty = {node: space.copy() for node, space in spaces.items()}
        return place(job, empty, world.policy) is not None
    for host in spaces:
        beside = {node: space.copy() for node, space in spaces.items()}
        if not beside[host].fits(rest):
            continue
        beside[host].take(rest)
        if job.distinct:
            del beside[host]
        room = [one.count(job.needs[0]) for one in beside.values()]
        if sum(min(one, 1) if job.distinct else one for one in room) >= len(job.needs) - 1:
            return True
    return False
