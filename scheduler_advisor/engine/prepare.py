"""From jobs, a cluster and a policy to the arrays of a replay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.buckets import empty_buckets, enter
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.counters import asked, counters_of
from scheduler_advisor.engine.errors import JobsError, PolicyError
from scheduler_advisor.engine.groups import Groups, grouped, tiers
from scheduler_advisor.engine.jit import kernel
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.limits import OutageKind
from scheduler_advisor.engine.parts.places import counts_islands, places_of
from scheduler_advisor.engine.placing import fits_alone
from scheduler_advisor.engine.policy import (
    Backfill,
    Order,
    Placement,
    Policy,
    Preemption,
    Ties,
)
from scheduler_advisor.engine.ranks import empty_ranks
from scheduler_advisor.engine.scoring import model_bits, score_table, typical_of, typical_table
from scheduler_advisor.engine.shadow import SHADOW_NUMBERS
from scheduler_advisor.engine.shape_table import hopeless_shapes, shape_table
from scheduler_advisor.engine.stood import before_of
from scheduler_advisor.engine.world import (
    ALL_GPU,
    ALL_MEM,
    GPU,
    GROUP,
    M_EVERY,
    M_LEFT,
    M_PREEMPTIBLE,
    M_PRIORITY,
    M_RESTORE,
    M_WRITE,
    MEM,
    MORE_COLUMNS,
    NODE_COLUMNS,
    NODE_DRAINS,
    NODE_FAILS,
    NODE_UP,
    RESERVATION_EDGE,
    S_PLAIN,
    S_SIZE,
    WHOLE,
    Book,
    Buckets,
    Classes,
    Family,
    Held,
    Nodes,
    Rows,
    Rules,
    Runs,
    Shadow,
    World,
)

Ints = NDArray[np.int64]
PLACEMENTS = {
    Placement.FIRST_FIT: 0,
    Placement.BEST_FIT: 1,
    Placement.WORST_FIT: 2,
    Placement.CONSOLIDATE: 3,
    Placement.RANDOM: 4,
    Placement.FGD: 5,
    Placement.DOT_PRODUCT: 6,
    Placement.TOPOLOGY: 1,  # jobs without whole GPUs; gangs go by parts/gang.py
}
BY_SCORE = (Placement.FGD, Placement.DOT_PRODUCT)
PLANNED = (Backfill.CONSERVATIVE, Backfill.CONSERVATIVE_COMPRESS)
MOST_SHARED_GPUS = 62  # a task's GPUs are bits of one integer


@dataclass(frozen=True, slots=True)
class Prepared:
    """A replay that is ready to run."""

    world: World
    rules: Rules
    unplaceable: NDArray[np.bool_]


def prepare(jobs: Jobs, cluster: Cluster, policy: Policy) -> Prepared:
    """The arrays of a replay; `jobs` have their shapes stated."""
    if policy.backfill in PLANNED and policy.placement in BY_SCORE:
        raise PolicyError(
            "policy: conservative backfill plans GPUs by number, which placement"
            f" {policy.placement} cannot score; use easy"
        )
    if policy.backfill in PLANNED and (jobs.gpu_milli > 0).any():
        raise PolicyError("policy: conservative backfill has no plan for shares of GPUs; use easy")
    if policy.backfill in PLANNED and cluster.headroom_gpus:
        raise PolicyError("policy: conservative backfill keeps no headroom; use easy")
    if policy.backfill in PLANNED and policy.preemption is not Preemption.NONE:
        raise PolicyError("policy: conservative backfill does not preempt; use easy")
    if not policy.gang and cluster.reservations:
        raise PolicyError("policy: gang = false knows no reservations; use gang = true")
    if not policy.gang and policy.preemption is not Preemption.NONE:
        raise PolicyError("policy: gang = false does not preempt; use gang = true")
    groups = grouped(jobs, cluster, places_of(cluster, policy))
    shapes, of_job = shape_table(jobs, groups)
    limits, over = counters_of(jobs, cluster)
    outside, held = _outside(jobs, cluster)
    hopeless = hopeless_shapes(cluster, groups, shapes)[of_job] | over
    hopeless |= _misses_reservation(jobs, held)
    rank, at_rank, first_rank = _ranks(jobs, cluster, policy, groups.component[groups.of_job])
    rules = _rules(jobs, cluster, policy, shapes, of_job, hopeless, len(first_rank) - 1)
    scores = policy.placement in BY_SCORE
    if rules.shares or rules.reservations or scores or (jobs.exclusive > 0).any():
        shapes[:, S_PLAIN] = 0
    nodes, buckets = _nodes(cluster, groups, rules)
    size = len(jobs)
    keeps_list = rules.preempt or policy.backfill in PLANNED
    tasks = jobs.tasks + (jobs.rest_gpus > 0)
    places = np.concatenate(([0], np.cumsum(tasks)))
    world = World(
        nodes=nodes,
        buckets=buckets,
        classes=_class_rows(groups),
        shapes=shapes,
        rows=Rows(
            run=jobs.run,
            limit=jobs.limit,
            shape=np.where(hopeless, -1, of_job),
            place=places[:-1],
        ),
        runs=_runs(jobs, rules),
        book=Book(
            node=np.zeros(int(places[-1]), np.int64),
            gpu=np.zeros(int(places[-1]) if rules.shares else 1, np.int64),
            before=before_of(jobs, cluster, places),
        ),
        held=held,
        limits=limits,
        family=_family(jobs),
        queue=empty_ranks(size),
        shadow=Shadow(
            number=np.zeros(SHADOW_NUMBERS, np.int64),
            share=np.zeros_like(nodes.share),
        ),
        failed=np.zeros((len(shapes), 3), np.int64),
        eligible=jobs.eligible,
        arrival=np.zeros(0, np.int64),
        rank=rank,
        at_rank=at_rank,
        component=groups.component,
        first_rank=first_rank,
        outside=outside,
        ends=np.zeros(size + 2, np.int64),
        believed=np.zeros(size + 2, np.int64),
        scratch=np.zeros(size + 2, np.int64),
        deferred=np.zeros(size if keeps_list else 1, np.int64),
        dirty=np.zeros(rules.components, np.int64),
    )
    _try_alone(world, rules, policy, jobs, of_job, hopeless)
    return Prepared(with_arrivals(world), rules, hopeless)


def with_arrivals(world: World) -> World:
    """The world whose jobs arrive when they are eligible. What can never run does not: at its
    instant nothing would have happened, and no pass would have been due."""
    able = np.flatnonzero(world.rows.shape >= 0)
    eligible = world.eligible[able]
    if np.any(eligible[1:] < eligible[:-1]):
        able = able[np.argsort(eligible, kind="stable")]
    return world._replace(arrival=able)


def _try_alone(
    world: World,
    rules: Rules,
    policy: Policy,
    jobs: Jobs,
    of_job: Ints,
    hopeless: NDArray[np.bool_],
) -> None:
    """Jobs of tasks and a smaller rest are tried on the empty cluster, one of each shape: which
    nodes the tasks get decides whether the rest finds one. Those that fail are hopeless. Where
    chance decides on nodes, or the network does, the count of `hopeless_shapes` must do."""
    by_chance = policy.placement_ties is Ties.RANDOM and policy.placement in BY_SCORE
    if policy.placement in (Placement.RANDOM, Placement.TOPOLOGY) or by_chance:
        return
    pieces = np.flatnonzero((jobs.rest_gpus > 0) & ~hopeless)
    shapes, first = np.unique(of_job[pieces], return_index=True)
    for shape, job in zip(shapes.tolist(), pieces[first].tolist(), strict=True):
        if not fits_alone(
            world.nodes, world.buckets, world.shadow, world.shapes, world.classes, world.held,
            world.rows, world.runs, world.book, rules, job, -2 - shape,
        ):  # fmt: skip
            alike = of_job == shape
            hopeless[alike] = True
            world.rows.shape[alike] = -1


def _runs(jobs: Jobs, rules: Rules) -> Runs:
    size = len(jobs)
    more = np.zeros((size if rules.interruptible else 1, MORE_COLUMNS), np.int64)
    if rules.interruptible:
        more[:, M_PRIORITY] = jobs.priority
        more[:, M_PREEMPTIBLE] = jobs.preemptible
        more[:, M_EVERY] = jobs.checkpoint_every
        more[:, M_WRITE] = jobs.checkpoint_cost
        more[:, M_RESTORE] = jobs.restore_cost
        more[:, M_LEFT] = jobs.run
    return Runs(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int8), more)


def _rules(
    jobs: Jobs,
    cluster: Cluster,
    policy: Policy,
    shapes: Ints,
    of_job: Ints,
    hopeless: NDArray[np.bool_],
    components: int,
) -> Rules:
    shares = (
        policy.placement is Placement.FGD
        or bool((jobs.gpu_milli > 0).any())
        or counts_islands(cluster, policy)
    )
    bits = model_bits(jobs, cluster) if policy.placement in BY_SCORE else {}
    most = int(cluster.gpus.max(initial=0))
    if shares and most > MOST_SHARED_GPUS:
        raise JobsError(
            f"jobs: shares of GPUs, and fgd, need nodes of at most {MOST_SHARED_GPUS} GPUs, not"
            f" {most}; give the fleet as NxG instead of a pool"
        )
    able = np.ones(len(shapes), bool)
    if hopeless.any():
        able[:] = False
        able[of_job[~hopeless]] = True
    sizes = shapes[able, S_SIZE]
    kills = any(outage.kind is OutageKind.FAIL for outage in cluster.outages)
    writes = bool(((jobs.checkpoint_every > 0) & (jobs.checkpoint_cost > 0)).any())
    preempts = policy.preemption is not Preemption.NONE
    return Rules(
        backfill=list(Backfill).index(policy.backfill),
        depth=policy.backfill_depth,
        max_limit=policy.backfill_max_limit_s,
        placement=PLACEMENTS[policy.placement],
        seed=policy.seed,
        preempt=int(preempts),
        headroom_milli=cluster.headroom_gpus * WHOLE,
        smallest_milli=int(sizes.min(initial=1 << 60)),
        components=components,
        limits=int(len(cluster.limits) > 0),
        reservations=int(len(cluster.reservations) > 0),
        shares=int(shares),
        interruptible=int(kills or writes or preempts),
        gang_timeout=policy.gang_timeout_s,
        most=most,
        plain_sizes=int(not cluster.outages and not (jobs.exclusive > 0).any()),
        dependencies=int(len(jobs.parent_of) > 0),
        ties=list(Ties).index(policy.placement_ties),
        typical=_typical(jobs, cluster, policy, bits),
        scored=_scored(cluster, policy, bits, len(shapes)),
    )


def _typical(jobs: Jobs, cluster: Cluster, policy: Policy, bits: dict[str, int]) -> Ints:
    if policy.placement not in BY_SCORE:
        return np.zeros((1, 6), np.int64)
    return typical_table(typical_of(jobs, bits), cluster)


def _scored(cluster: Cluster, policy: Policy, bits: dict[str, int], shapes: int) -> Ints:
    if policy.placement not in BY_SCORE:
        return np.zeros((1, 1), np.int64)
    return score_table(cluster, bits, shapes)


def _ranks(
    jobs: Jobs, cluster: Cluster, policy: Policy, component: Ints
) -> tuple[Ints, Ints, Ints]:
    """Each job's place in the order, the job at each place, and where each queue begins."""
    size = len(jobs)
    queues = int(component.max(initial=0)) + 1
    key = _order_key(jobs, policy)
    tier = -tiers(jobs, cluster)
    if queues == 1 and not key.any() and not tier.any():
        order = np.arange(size)
    else:
        order = np.lexsort((jobs.submit, key, tier, component))
    rank = np.empty(size, np.int64)
    rank[order] = np.arange(size)
    first_rank = np.searchsorted(component[order], np.arange(queues + 1)).astype(np.int64)
    return rank, order.astype(np.int64), first_rank


def _order_key(jobs: Jobs, policy: Policy) -> Ints:
    """What the order goes by; smaller is earlier."""
    if policy.order is Order.PRIORITY:
        return -jobs.priority
    if policy.order is Order.LARGEST_FIRST:
        return -asked(jobs)
    if policy.order is Order.SJF_LIMIT:
        return jobs.limit
    if policy.order is Order.SJF_TRUE:
        return jobs.run
    return np.zeros(len(jobs), np.int64)


def order_bands(jobs: Jobs, cluster: Cluster, policy: Policy) -> Ints:
    """Jobs of one band are told apart by time alone; a lower band comes first."""
    pairs = np.stack((-tiers(jobs, cluster), _order_key(jobs, policy)), axis=1)
    _, band = np.unique(pairs, axis=0, return_inverse=True)
    return band.reshape(-1).astype(np.int64)


@kernel
def _fill(buckets: Buckets, group: object, gpus: object, most: int) -> None:
    for node in range(len(group)):  # type: ignore[arg-type]
        enter(buckets, group[node], gpus[node], most, node)  # type: ignore[index]


def _nodes(cluster: Cluster, groups: Groups, rules: Rules) -> tuple[Nodes, Buckets]:
    size = len(cluster)
    table = np.zeros((size, NODE_COLUMNS), np.int64)
    capacity = np.stack((cluster.gpus, cluster.cpu_milli, cluster.mem_mib), axis=1)
    table[:, GPU : MEM + 1] = capacity
    table[:, ALL_GPU : ALL_MEM + 1] = capacity
    table[:, GROUP] = groups.of_node
    share = np.zeros((1, 1), np.int64)
    if rules.shares:
        there = np.arange(rules.most)[None, :] < cluster.gpus[:, None]
        share = np.where(there, WHOLE, 0).astype(np.int64)
    buckets = empty_buckets(groups.member.shape[1], rules.most, size)
    _fill(buckets, groups.of_node, cluster.gpus, rules.most)
    return Nodes(table, share), buckets


def _class_rows(groups: Groups) -> Classes:
    lists = [np.flatnonzero(row) for row in groups.member]
    return Classes(
        start=np.concatenate(([0], np.cumsum([len(one) for one in lists]))).astype(np.int64),
        groups=np.concatenate(lists).astype(np.int64) if lists else np.zeros(0, np.int64),
        member=groups.member,
    )


def _outside(jobs: Jobs, cluster: Cluster) -> tuple[Ints, Held]:
    """Outages and reservation edges in order of time; the reservations."""
    events: list[tuple[int, int, int]] = []
    for outage in cluster.outages:
        node = cluster.index[outage.node]
        kind = NODE_FAILS if outage.kind is OutageKind.FAIL else NODE_DRAINS
        events.append((outage.down_at, kind, node))
        if outage.up_at is not None:
            events.append((outage.up_at, NODE_UP, node))
    for one in cluster.reservations:
        events += [(one.start_at, RESERVATION_EDGE, -1), (one.end_at, RESERVATION_EDGE, -1)]
    covers = np.zeros((len(cluster.reservations), len(cluster)), np.int8)
    for at, one in enumerate(cluster.reservations):
        covers[at, [cluster.index[name] for name in one.nodes]] = 1
    number = {one.name: at for at, one in reversed(list(enumerate(cluster.reservations)))}
    by_name = np.array([number.get(name, -1) for name in jobs.reservation.names], np.int64)
    windows = [(one.start_at, one.end_at) for one in cluster.reservations]
    held = Held(
        window=np.array(windows, np.int64).reshape(-1, 2),
        covers=covers,
        named=by_name[jobs.reservation.codes],
    )
    return np.array(sorted(events), np.int64).reshape(-1, 3), held


def _misses_reservation(jobs: Jobs, held: Held) -> NDArray[np.bool_]:
    """Names a reservation that is not there, or too short for it."""
    asks = np.array([bool(name) for name in jobs.reservation.names])[jobs.reservation.codes]
    if not asks.any():
        return asks
    lengths = np.append(held.window[:, 1] - held.window[:, 0], 0)  # -1 finds the 0
    return asks & ((held.named < 0) | (lengths[held.named] < jobs.limit))


def _family(jobs: Jobs) -> Family:
    pairs = np.unique(jobs.parent_of, axis=0) if len(jobs.parent_of) else jobs.parent_of
    if not len(pairs):
        return Family(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64))
    order = np.argsort(pairs[:, 1], kind="stable")
    count = np.bincount(pairs[:, 1], minlength=len(jobs))
    return Family(
        waits_for=np.bincount(pairs[:, 0], minlength=len(jobs)).astype(np.int64),
        child_start=np.concatenate(([0], np.cumsum(count))).astype(np.int64),
        children=pairs[order, 0].copy(),
    )
