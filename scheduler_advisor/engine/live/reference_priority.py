"""Keys of the orders that learn or change: predicted run times, multifactor priorities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler_advisor.engine.live.reference_tree import MILLION, fair_factors
from scheduler_advisor.engine.reference_world import Job

if TYPE_CHECKING:
    from scheduler_advisor.engine.live.reference import LiveWorld


def predicted(world: LiveWorld, job: Job) -> int:
    """Mean run time of ended jobs of the same user and size, of the same user, of all: the first
    of these groups with enough of them; else the limit, and never above it."""
    jobs = world.jobs

    def same(other: int, user: bool, size: bool) -> bool:
        return (not user or jobs.user[other] == jobs.user[job.index]) and (
            not size or world.size(world.all[other]) == world.size(job)
        )

    for user, size in ((True, True), (True, False), (False, False)):
        group = [int(jobs.run[other]) for other in world.ended if same(other, user, size)]
        if len(group) >= world.policy.ordering.learn_from:
            return min(job.limit, sum(group) // len(group))
    return job.limit


def multifactor_key(world: LiveWorld, job: Job) -> int:
    """Minus the priority as worked out when the period began."""
    weights, fair = world.policy.multifactor, world.policy.fair
    began = world.now // fair.period_s * fair.period_s
    age = min(max(0, began - int(world.jobs.eligible[job.index])), weights.max_age_s)
    factors = fair_factors(world.nodes, world.used)
    priority = fixed_priority(world, job)
    priority += weights.age * (age * MILLION // weights.max_age_s) // MILLION
    priority += weights.fairshare * factors[world.leaf[job.index]] // MILLION
    return -priority


def fixed_priority(world: LiveWorld, job: Job) -> int:
    """The factors that never change."""
    jobs, weights, cluster = world.jobs, world.policy.multifactor, world.cluster
    index = job.index

    def factor(amount: int, total: int) -> int:
        return min(MILLION, amount * MILLION // total) if total > 0 else 0

    def named(table: tuple[tuple[str, int], ...], names: list[str]) -> int:
        given = dict(table)
        return factor(max(given.get(name, 0) for name in names), max([0, *given.values()]))

    size = factor(world.size(job), 1000 * cluster.total_gpus)
    if weights.favor_small:
        size = MILLION - size
    cpu = sum(need.cpu for need in job.needs)
    mem = sum(need.mem for need in job.needs)
    terms = (
        (weights.association, named(weights.account_priority, [jobs.account[index]])),
        (weights.size, size),
        (weights.partition, named(weights.partition_priority, jobs.partitions[index].split("|"))),
        (weights.qos, named(weights.qos_priority, [jobs.qos[index]])),
        (weights.tres_gpu, factor(world.size(job), 1000 * cluster.total_gpus)),
        (weights.tres_cpu, factor(cpu, int(cluster.cpu_milli.sum()))),
        (weights.tres_mem, factor(mem, int(cluster.mem_mib.sum()))),
    )
    priority = sum(weight * value // MILLION for weight, value in terms)
    priority += weights.site * int(jobs.priority[index])
    return priority - weights.nice * int(jobs.nice[index])
