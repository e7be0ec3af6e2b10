"""From jobs, a cluster and a policy to the arrays of the general driver."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.counters import asked
from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.live.make_hope import make_hope, with_hope
from scheduler_advisor.engine.live.make_order import (
    fixed_priority,
    guess_of,
    lines_of,
    standing_of,
)
from scheduler_advisor.engine.live.make_tree import Queues, make_tree
from scheduler_advisor.engine.live.order import ATTAINED, FIXED, MULTIFACTOR, PREDICTED
from scheduler_advisor.engine.live.queues import BY_DRF, BY_SHARE, NO_MAXIMUM
from scheduler_advisor.engine.live.settings import (
    Eligible,
    Entitlement,
    Reach,
    Reclaim,
    Stop,
    Victims,
)
from scheduler_advisor.engine.live.tuples import (
    EPOCH,
    FIRST,
    FREE,
    LONG_EPOCH,
    NEVER,
    NONE,
    NOW,
    Q_KEEP,
    Q_MAXIMUM,
    Q_PARENT,
    SCALARS,
    TICK,
    Crowd,
    Factors,
    Fate,
    Live,
    Terms,
)
from scheduler_advisor.engine.parts.net import Net
from scheduler_advisor.engine.parts.places import by_network
from scheduler_advisor.engine.parts.with_net import empty_net, with_net
from scheduler_advisor.engine.policy import (
    STATIC_ORDERS,
    Order,
    Placement,
    Policy,
    Preemption,
)
from scheduler_advisor.engine.prepare import Prepared, prepare, with_arrivals
from scheduler_advisor.engine.world import M_RESTORE, S_PLAIN, WHOLE

Ints = NDArray[np.int64]
DECAY_ONE = 1 << 20
KIB = 1 << 20  # KiB in a GiB
MILLION = 1_000_000
MOST_PLANS = 100
ORDERS = {
    Order.SJF_PREDICTED: PREDICTED,
    Order.LAS: ATTAINED,
    Order.MULTIFACTOR: MULTIFACTOR,
}
BY_QUEUE = {Order.FAIR_SHARE: BY_SHARE, Order.DRF: BY_DRF}


@dataclass(frozen=True, slots=True)
class LivePrepared:
    """A replay by the general driver that is ready to run."""

    base: Prepared
    live: Live
    terms: Terms
    queues: Queues
    z: Ints
    lines_each: int


def prepare_live(jobs: Jobs, cluster: Cluster, policy: Policy) -> LivePrepared:
    """The arrays of a replay; `jobs` have their shapes stated."""
    stands_in = replace(
        policy,
        order=policy.order if policy.order in STATIC_ORDERS else Order.FIFO,
        preemption=Preemption.PRIORITY,  # jobs can be stopped, so that attempts are counted
    )
    base = prepare(jobs, cluster, stands_in)
    began = int(jobs.eligible.min(initial=0))
    keeps_usage = policy.order is Order.MULTIFACTOR or policy.fair.half_life_s > 0
    queues = make_tree(jobs, policy.quota, policy.fair.period_s if keeps_usage else 0, began)
    base = _over_maximum(jobs, base, queues)
    terms = _terms(policy, queues, keeps_usage, len(base.world.held.window))
    standing = standing_of(jobs, cluster, policy)
    terms = with_hope(terms, policy, jobs, cluster, len(np.unique(standing)))
    _refuse(jobs, policy, base, terms)
    net = empty_net()
    if by_network(policy):
        base, net = with_net(base, jobs, cluster, policy)
    if terms.whole_nodes:
        base = _with_plans(base, cluster, terms)
    if policy.eviction.gib_per_gpu:
        kib = np.maximum(1, asked(jobs) * terms.kib_per_gpu // WHOLE)
        base.world.runs.more[:, M_RESTORE] += -(-kib // terms.kib_s)
    live, lines_each = _live(jobs, cluster, policy, base, queues, terms, net, standing)
    z = np.zeros(SCALARS, np.int64)
    z[FREE] = cluster.total_gpus * WHOLE
    z[NOW] = -(1 << 60)
    z[FIRST] = NEVER
    z[TICK] = -(1 << 40)
    z[EPOCH] = z[LONG_EPOCH] = 1  # nothing has failed yet
    return LivePrepared(base, live, terms, queues, z, lines_each)


def _refuse(jobs: Jobs, policy: Policy, base: Prepared, terms: Terms) -> None:
    slow = terms.timed and terms.preempts
    kept = terms.preempts and policy.eviction.mode is Stop.SUSPEND
    if (slow or kept) and (
        base.rules.shares or policy.placement in (Placement.FGD, Placement.DOT_PRODUCT)
    ):
        raise PolicyError(
            "policy: preemption that takes time, or suspends, knows whole GPUs only, and no"
            " placement by score; set preemption.grace_s=0 and preemption.mode=requeue"
        )
    if kept and (jobs.exclusive > 0).any():
        raise PolicyError("policy: suspended jobs share their nodes; no job can be exclusive")
    if terms.whole_nodes and base.rules.shares:
        raise PolicyError("policy: backfill.whole_nodes knows whole GPUs only")


def _over_maximum(jobs: Jobs, base: Prepared, queues: Queues) -> Prepared:
    """Jobs larger than a maximum above them can never run."""
    row, size = queues.tree.row, asked(jobs)
    over = np.zeros(len(jobs), bool)
    queue = queues.tree.leaf.copy()
    while (queue > 0).any():
        over |= (queue > 0) & (size > row[queue, Q_MAXIMUM])
        queue = np.where(queue > 0, row[queue, Q_PARENT], 0)
    if not over.any():
        return base
    rows = base.world.rows._replace(shape=np.where(over, -1, base.world.rows.shape))
    world = with_arrivals(base.world._replace(rows=rows))
    return replace(base, world=world, unplaceable=base.unplaceable | over)


def _with_plans(base: Prepared, cluster: Cluster, terms: Terms) -> Prepared:
    """Rows of reservations that a pass fills with what it plans."""
    held = base.world.held
    rows = np.zeros((terms.most_plans, 2), np.int64)
    covers = np.zeros((terms.most_plans, len(cluster)), np.int8)
    held = held._replace(
        window=np.concatenate((held.window, rows)), covers=np.concatenate((held.covers, covers))
    )
    base.world.shapes[:, S_PLAIN] = 0
    # One queue over all nodes: a blocked job of one model stops those of another too.
    component = np.zeros_like(base.world.component)
    return replace(
        base,
        world=base.world._replace(held=held, component=component),
        rules=base.rules._replace(reservations=1, components=1),
    )


def _terms(policy: Policy, queues: Queues, keeps_usage: bool, plans_from: int) -> Terms:
    fair, part, quota, weights = policy.fair, policy.eviction, policy.quota, policy.multifactor
    decay = DECAY_ONE
    if fair.half_life_s:
        decay = int(DECAY_ONE * 0.5 ** (fair.period_s / fair.half_life_s))
    by_rank = policy.preemption is not Preemption.NONE
    reclaim = list(Reclaim).index(quota.reclaim)
    row = queues.tree.row
    return Terms(
        order=ORDERS.get(policy.order, FIXED),
        by_queue=BY_QUEUE.get(policy.order, 0),
        entitlement=list(Entitlement).index(fair.entitlement),
        half_life=0 if policy.order is Order.DRF else fair.half_life_s,  # what is held now
        decay=decay,
        period=fair.period_s if keeps_usage else 0,
        strict=int(quota.strict),
        reclaim=reclaim,
        reclaim_fair=int(quota.reclaim_to is Entitlement.TWO_STEP),
        by_rank=int(by_rank),
        preempts=int(by_rank or reclaim > 0),
        victims=list(Victims).index(part.victims),
        own_queue=int(part.reach is Reach.QUEUE),
        mode=list(Stop).index(part.mode),
        min_run=part.min_run_s,
        max_per_job=part.max_per_job,
        max_per_hour=part.max_per_hour,
        max_team_milli=part.max_team_gpus_per_hour * WHOLE,
        grace=part.grace_s,
        timed=int(part.takes_time),
        kib_per_gpu=part.gib_per_gpu * KIB,
        kib_s=part.storage_gib_s * KIB,
        two_step=int(Entitlement.TWO_STEP in (fair.entitlement, quota.reclaim_to)),
        keeps=int((row[:, Q_KEEP] > 0).any()),
        weight_age=weights.age,
        weight_fair=weights.fairshare,
        max_age=weights.max_age_s,
        learn=policy.ordering.learn_from,
        interval=policy.backfill_interval_s,
        whole_nodes=int(policy.backfill_whole_nodes),
        first_plan=plans_from,
        most_plans=MOST_PLANS if policy.backfill_whole_nodes else 0,
        limits_queues=int((row[1:, Q_MAXIMUM] < NO_MAXIMUM).any()),
        has_levels=int(policy.order is Order.LAS and len(policy.ordering.levels()) > 0),
        remembers=0,
        bounded=0,
        coarse=0,
        skips=0,
        by_network=int(policy.placement is Placement.TOPOLOGY),
        slows=int(policy.topology.slowdown),
    )


def _live(
    jobs: Jobs,
    cluster: Cluster,
    policy: Policy,
    base: Prepared,
    queues: Queues,
    terms: Terms,
    net: Net,
    standing: Ints,
) -> tuple[Live, int]:
    size = len(jobs)
    lines_each = len(queues.tree.row) if terms.by_queue else 1

    def zeros(length: int = size) -> Ints:
        return np.zeros(length, np.int64)

    per = np.maximum(jobs.gpus_per_task, 1)
    rest = jobs.rest_gpus > 0
    cpu = jobs.tasks * jobs.cpu_milli + rest * -(-jobs.cpu_milli * jobs.rest_gpus // per)
    mem = jobs.tasks * jobs.mem_mib + rest * -(-jobs.mem_mib * jobs.rest_gpus // per)
    preemptible = np.ones(size, np.int64)
    if policy.eviction.eligible is Eligible.FLAGGED:
        preemptible = (jobs.preemptible > 0).astype(np.int64)
    total = np.array(
        [cluster.total_gpus * WHOLE, cluster.cpu_milli.sum(), cluster.mem_mib.sum()], np.int64
    )
    live = Live(
        lines=lines_of(jobs, cluster, policy, base, queues, lines_each, terms),
        tree=queues.tree,
        fate=Fate(
            kind=zeros(),
            claim=np.full(size, NONE, np.int64),
            left=zeros(),
            natural=zeros(),
            standing=standing,
            stoppable=preemptible,
            by=zeros(),
            asked_at=np.full(size, NONE, np.int64),
            stake=zeros(),
        ),
        crowd=Crowd(
            *(
                *(zeros(size + 2) for _ in range(11)),
                np.full(len(queues.tree.row), NONE, np.int64),  # front of each queue's jobs
                zeros(),
                zeros(),
            )
        ),
        guess=guess_of(jobs),
        factors=Factors(
            fixed_priority(jobs, cluster, policy, cpu, mem)
            if terms.order == MULTIFACTOR
            else zeros(1)
        ),
        ends=zeros(2 * size + 64),
        believed=zeros(2 * size + 64),
        timers=zeros(4 * size + 64),
        size_cpu=cpu,
        size_mem=mem,
        total=total,
        hope=make_hope(base, standing, len(queues.tree.row), terms),
        levels=np.array([one * WHOLE for one in policy.ordering.levels()], np.int64),
        planned=np.zeros((len(cluster) if terms.whole_nodes else 1, 4), np.int64),
        net=net,
    )
    return live, lines_each
