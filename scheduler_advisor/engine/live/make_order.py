"""What jobs are ordered by in the general driver: importance, lines, predictions, priorities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.counters import asked
from scheduler_advisor.engine.groups import tiers
from scheduler_advisor.engine.jobs import Jobs, Named
from scheduler_advisor.engine.live.make_tree import Queues
from scheduler_advisor.engine.live.settings import Rank
from scheduler_advisor.engine.live.tuples import Guess, Lines, Terms
from scheduler_advisor.engine.policy import STATIC_ORDERS, Policy
from scheduler_advisor.engine.prepare import Prepared, _order_key
from scheduler_advisor.engine.world import S_CLASS, WHOLE

Ints = NDArray[np.int64]
MILLION = 1_000_000


def standing_of(jobs: Jobs, cluster: Cluster, policy: Policy) -> Ints:
    """How important each job is to preemption."""
    if policy.eviction.by is Rank.TIER:
        return tiers(jobs, cluster)
    return jobs.priority.astype(np.int64)


def lines_of(
    jobs: Jobs,
    cluster: Cluster,
    policy: Policy,
    base: Prepared,
    queues: Queues,
    lines_each: int,
    terms: Terms,
) -> Lines:
    world = base.world
    shape = np.maximum(world.rows.shape, 0)
    part = world.component[world.shapes[shape, S_CLASS]] if len(jobs) else np.zeros(0, np.int64)
    line = part * lines_each + (queues.tree.leaf if terms.by_queue else 0)
    count = base.rules.components * lines_each
    room = np.concatenate(([0], np.cumsum(np.bincount(line, minlength=count)))).astype(np.int64)
    key = np.zeros(len(jobs), np.int64)
    if policy.order in STATIC_ORDERS:
        key = _order_key(jobs, policy).astype(np.int64)
    return Lines(
        jobs=np.zeros(len(jobs) + 1, np.int64),
        room=room,
        first=room[:-1].copy(),
        last=room[:-1].copy(),
        of=line.astype(np.int64),
        key=key,
        tier=-tiers(jobs, cluster),
        cursor=np.zeros(count, np.int64),
    )


def guess_of(jobs: Jobs) -> Guess:
    """Groups of jobs whose run times are alike: user and size, user, all."""
    pairs = np.stack((jobs.user.codes, asked(jobs)), axis=1)
    _, fine = np.unique(pairs, axis=0, return_inverse=True)
    fine = fine.reshape(-1)
    first_user = int(fine.max(initial=-1)) + 1
    every = first_user + int(jobs.user.codes.max(initial=-1)) + 1
    of = np.stack((fine, first_user + jobs.user.codes, np.full(len(jobs), every, np.int64)), axis=1)
    zeros = np.zeros(every + 1, np.int64)
    return Guess(of.astype(np.int64), zeros, zeros.copy())


def fixed_priority(jobs: Jobs, cluster: Cluster, policy: Policy, cpu: Ints, mem: Ints) -> Ints:
    """What the factors that never change give each job."""
    weights = policy.multifactor

    def factor(amount: Ints, total: int) -> Ints:
        if total <= 0:
            return np.zeros(len(amount), np.int64)
        return np.minimum(MILLION, amount * MILLION // total)

    def named(pairs: tuple[tuple[str, int], ...], column: Named) -> Ints:
        given = dict(pairs)
        most = max([0, *given.values()])
        best = [max(given.get(one, 0) for one in name.split("|")) for name in column.names]
        return factor(np.array(best, np.int64)[column.codes], most)

    gpu = factor(asked(jobs), cluster.total_gpus * WHOLE)
    terms = (
        (weights.association, named(weights.account_priority, jobs.account)),
        (weights.size, MILLION - gpu if weights.favor_small else gpu),
        (weights.partition, named(weights.partition_priority, jobs.partitions)),
        (weights.qos, named(weights.qos_priority, jobs.qos)),
        (weights.tres_gpu, gpu),
        (weights.tres_cpu, factor(cpu, int(cluster.cpu_milli.sum()))),
        (weights.tres_mem, factor(mem, int(cluster.mem_mib.sum()))),
    )
    fixed = weights.site * jobs.priority - weights.nice * jobs.nice
    for weight, value in terms:
        if weight:
            fixed = fixed + weight * value // MILLION
    return fixed.astype(np.int64)
