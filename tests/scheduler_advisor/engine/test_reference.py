"""The fast engine and the slow one start every job at the same second on the same nodes."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler_advisor.engine import (
    Backfill,
    Cluster,
    Jobs,
    Limit,
    Order,
    Outage,
    OutageKind,
    Partition,
    Placement,
    Policy,
    Preemption,
    Reservation,
    Scope,
    Ties,
    simulate,
)
from scheduler_advisor.engine.reference import reference

pytestmark = pytest.mark.prove

ORDERS = st.sampled_from(
    [Order.FIFO, Order.PRIORITY, Order.LARGEST_FIRST, Order.SJF_LIMIT, Order.SJF_TRUE]
)
STOPS = st.sampled_from([Preemption.NONE, Preemption.PRIORITY])
PLACEMENTS = st.sampled_from(
    [
        Placement.FIRST_FIT,
        Placement.BEST_FIT,
        Placement.WORST_FIT,
        Placement.CONSOLIDATE,
        Placement.RANDOM,
    ]
)
SCORED = st.sampled_from([Placement.FGD, Placement.FGD, Placement.DOT_PRODUCT])
NAMES = st.sampled_from(["", "a", "b", "a|b"])


def same(jobs: Jobs, cluster: Cluster, policy: Policy) -> None:
    fast = simulate(jobs, cluster, policy)
    slow = reference(jobs, cluster, policy)
    for job in range(len(jobs)):
        context = (job, policy)
        if job in slow.unplaceable:
            assert fast.state[job] == 2, context
            continue
        assert fast.starts[job] == slow.starts[job], context
        if slow.first_start[job] is not None:
            assert fast.first_start[job] == slow.first_start[job], context
        assert (fast.state[job] == 0) == (slow.start[job] is not None), context
        if slow.start[job] is not None:
            assert fast.start[job] == slow.start[job], context
            assert fast.end[job] == slow.end[job], context
            assert fast.nodes(job).tolist() == slow.nodes[job], context
        assert fast.lost_s[job] == slow.lost_s[job], context
        assert fast.overhead_s[job] == slow.overhead_s[job], context
        assert fast.preemptions[job] == slow.preemptions[job], context
    assert [(one.at, one.jobs) for one in fast.deadlocks] == [
        (at, count) for at, count, _ in slow.deadlocks
    ]


@st.composite
def nodes_of(draw, rich):
    size = draw(st.integers(1, 5))
    if not rich:
        return Cluster.uniform(size, draw(st.sampled_from([1, 2, 4, 8])))
    column = st.lists(st.integers(0, 4), min_size=size, max_size=size)
    features = [frozenset(draw(st.sampled_from(["", "f", "g", "fg"]))) for _ in range(size)]
    return Cluster.build(
        gpus=draw(column),
        cpu_milli=[1000 * n for n in draw(column)],
        mem_mib=[100 * n for n in draw(column)],
        gpu_model=[draw(st.sampled_from(["a", "b"])) for _ in range(size)],
        features=features,
    )


@st.composite
def jobs_of(draw, rich, shares=False, most=14):
    size = draw(st.integers(1, most))

    def column(values):
        return draw(st.lists(values, min_size=size, max_size=size))

    columns = {
        "submit": column(st.integers(0, 12)),
        "run": column(st.integers(0, 9)),
        "gpus": column(st.integers(0, 9)),
        "limit": column(st.integers(0, 14)),
        "priority": column(st.integers(0, 2)),
    }
    if rich:
        columns |= {
            "tasks": column(st.integers(0, 3)),
            "gpus_per_task": column(st.integers(0, 3)),
            "cpu_milli": column(st.sampled_from([0, 0, 1000, 2000])),
            "mem_mib": column(st.sampled_from([0, 0, 100, 200])),
            "distinct_nodes": column(st.sampled_from([0, 0, 1])),
            "exclusive": column(st.sampled_from([0, 0, 0, 1])),
            "gpu_models": column(st.sampled_from(["", "", "a", "b", "a|b"])),
            "features": column(st.sampled_from(["", "", "f", "f&g"])),
        }
    if shares:
        columns["gpu_milli"] = column(st.sampled_from([0, 0, 300, 500, 1000]))
    return Jobs.build(**columns)


@st.composite
def policies(draw, backfills=tuple(Backfill), preemption=False):
    return Policy(
        order=draw(ORDERS),
        backfill=draw(st.sampled_from(backfills)),
        backfill_depth=draw(st.sampled_from([0, 0, 1, 3])),
        backfill_max_limit_s=draw(st.sampled_from([0, 0, 6])),
        placement=draw(PLACEMENTS),
        preemption=draw(STOPS) if preemption else Preemption.NONE,
        seed=draw(st.integers(0, 3)),
    )


IN_ORDER = (Backfill.NONE, Backfill.GREEDY, Backfill.EASY)
PROVE = os.environ.get("UNSTRAND_PROVE") == "1"
MANY = settings(
    max_examples=800 if PROVE else 40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)


@MANY
@given(st.data())
def test_a_pool_of_gpus(data):
    jobs = data.draw(jobs_of(rich=False))
    same(jobs, Cluster.pool(data.draw(st.integers(1, 12))), data.draw(policies()))


@MANY
@given(st.data())
def test_a_pool_whose_limits_are_exact_keeps_its_plan(data):
    jobs = data.draw(jobs_of(rich=False))
    run = jobs.run + 1
    jobs = jobs.changed(run=run, limit=run)
    policy = Policy(backfill=Backfill.CONSERVATIVE)
    same(jobs, Cluster.pool(data.draw(st.integers(1, 12))), policy)


def test_the_drivers_of_pools_and_of_nodes_make_the_same_plans():
    """A CPU asked for by one job is what sends a pool to the driver of nodes."""
    for seed in range(24):
        random = np.random.default_rng(seed)
        count, gpus = int(random.integers(50, 200)), int(random.integers(4, 40))
        run = random.integers(0, 60, count) * random.integers(0, 3, count)
        jobs = Jobs.build(
            submit=np.sort(random.integers(0, 2000, count)),
            run=run,
            gpus=random.integers(0, gpus + 3, count),
            limit=(run * random.uniform(1, (1, 2, 10)[seed % 3], count)).astype(int),
            priority=random.integers(0, 3, count),
        )
        order = (Order.FIFO, Order.PRIORITY, Order.SJF_LIMIT, Order.LARGEST_FIRST)[seed % 4]
        policy = Policy(order=order, backfill=Backfill.CONSERVATIVE)
        pool = simulate(jobs, Cluster.pool(gpus), policy)
        asks = jobs.changed(cpu_milli=np.eye(1, count, dtype=int)[0])
        node = simulate(asks, Cluster.pool(gpus), policy)
        assert pool.start.tolist() == node.start.tolist(), seed
        assert pool.state.tolist() == node.state.tolist(), seed
        assert pool.held_gpu_s == node.held_gpu_s


@MANY
@given(st.data())
def test_equal_nodes(data):
    same(data.draw(jobs_of(rich=False)), data.draw(nodes_of(rich=False)), data.draw(policies()))


@MANY
@given(st.data())
def test_jobs_that_ran_before_have_their_own_nodes_again(data):
    jobs, cluster = data.draw(jobs_of(rich=False)), data.draw(nodes_of(rich=False))
    nodes = st.lists(st.sampled_from([*cluster.names, "gone"]), max_size=3).map("|".join)
    stood = data.draw(st.lists(nodes, min_size=len(jobs), max_size=len(jobs)))
    same(jobs.changed(stood_on=stood), cluster, data.draw(policies(IN_ORDER)))


def test_a_job_that_ran_before_is_not_moved_to_the_fullest_node():
    jobs = Jobs.build(
        submit=[0, 0, 5], run=[9, 9, 2], gpus=[1, 1, 4], stood_on=["n00000", "n00001", ""]
    )
    policy = Policy(backfill=Backfill.EASY)
    assert simulate(jobs, Cluster.uniform(2, 4), policy).start.tolist() == [0, 0, 9]
    apart = jobs.changed(stood_on=["", "", ""])
    assert simulate(apart, Cluster.uniform(2, 4), policy).start.tolist() == [0, 0, 5]
    fewer = Cluster.uniform(1, 4)  # its node is gone: it goes where there is room
    assert simulate(jobs, fewer, policy).start.tolist() == [0, 0, 9]


@MANY
@given(st.data())
def test_cpu_memory_models_features_gangs_and_exclusive_jobs(data):
    same(data.draw(jobs_of(rich=True)), data.draw(nodes_of(rich=True)), data.draw(policies()))


@MANY
@given(st.data())
def test_shares_of_gpus(data):
    jobs = data.draw(jobs_of(rich=True, shares=True))
    same(jobs, data.draw(nodes_of(rich=True)), data.draw(policies(IN_ORDER)))


def test_ends_of_jobs_that_are_over_bring_no_shadow():
    """The head's task and rest have room when counted apart, never side by side; jobs of no length
    leave ends behind, and the job after the head still starts."""
    size = 6
    jobs = Jobs.build(
        submit=np.zeros(size, np.int64),
        run=np.array([0, 0, 0, 0, 1, 0]),
        limit=np.array([0, 0, 0, 0, 1, 0]),
        gpus=np.array([0, 5, 0, 0, 1, 0]),
        features=["", "f", "", "", "", ""],
    )
    cluster = replace(
        Cluster.uniform(3, 4),
        gpus=np.array([4, 0, 1]),
        features=(frozenset({"f"}), frozenset(), frozenset()),
    )
    policy = Policy(backfill=Backfill.EASY)
    same(jobs, cluster, policy)
    assert simulate(jobs, cluster, policy).starts.tolist() == [1, 0, 1, 1, 1, 1]


@MANY
@given(st.data())
def test_placement_by_score_fgd_and_dot_product_with_every_tie_rule(data):
    jobs = data.draw(jobs_of(rich=True, shares=True))
    cluster = data.draw(nodes_of(rich=True))
    names = data.draw(st.permutations(list(cluster.names)))
    policy = replace(
        data.draw(policies(IN_ORDER)),
        placement=data.draw(SCORED),
        placement_ties=data.draw(st.sampled_from(list(Ties))),
    )
    same(jobs, replace(cluster, names=tuple(names)), policy)


@MANY
@given(st.data())
def test_placement_by_score_among_failures_preemption_and_headroom(data):
    cluster = data.draw(nodes_of(rich=True))
    jobs = data.draw(jobs_of(rich=True, shares=True))
    size = len(jobs)
    jobs, cluster = data.draw(ruled(jobs, cluster, headroom=True))
    kept = data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    jobs = jobs.changed(preemptible=kept, checkpoint_every=[2] * size)
    cluster = replace(cluster, outages=data.draw(outages(cluster)))
    chosen = data.draw(policies(IN_ORDER, preemption=True))
    same(jobs, cluster, replace(chosen, placement=data.draw(SCORED)))


@st.composite
def outages(draw, cluster):
    found = []
    for _ in range(draw(st.integers(0, 3))):
        down = draw(st.integers(0, 20))
        up = draw(st.sampled_from([None, down + 1, down + 5]))
        kind = draw(st.sampled_from(list(OutageKind)))
        found.append(Outage(draw(st.sampled_from(cluster.names)), down, up, kind))
    return tuple(found)


@MANY
@given(st.data())
def test_failures_drains_and_checkpoints(data):
    rich = data.draw(st.booleans())
    cluster = data.draw(nodes_of(rich=rich))
    jobs = data.draw(jobs_of(rich=rich))
    size = len(jobs)

    def column(values):
        return data.draw(st.lists(values, min_size=size, max_size=size))

    jobs = jobs.changed(
        checkpoint_every=column(st.sampled_from([0, 2, 3])),
        checkpoint_cost=column(st.integers(0, 2)),
        restore_cost=column(st.integers(0, 2)),
    )
    cluster = replace(cluster, outages=data.draw(outages(cluster)))
    same(jobs, cluster, data.draw(policies()))


@MANY
@given(st.data())
def test_preemption_by_priority(data):
    rich = data.draw(st.booleans())
    jobs = data.draw(jobs_of(rich=rich, shares=rich))
    size = len(jobs)
    kept = data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    jobs = jobs.changed(preemptible=kept, checkpoint_every=[2] * size)
    policy = data.draw(policies(IN_ORDER, preemption=True))
    same(jobs, data.draw(nodes_of(rich=rich)), policy)


@st.composite
def ruled(draw, jobs, cluster, headroom):
    """Partitions, limits, reservations, headroom and dependencies on top."""
    size = len(jobs)

    def column(values):
        return draw(st.lists(values, min_size=size, max_size=size))

    subsets = st.lists(st.sampled_from(cluster.names), min_size=1, max_size=3, unique=True)
    partitions = tuple(
        Partition(
            name,
            tuple(draw(subsets)),
            max_limit_s=draw(st.sampled_from([None, None, 8])),
            max_gpus_per_job=draw(st.sampled_from([None, None, 2])),
            tier=draw(st.integers(0, 1)),
            default=name == "a",
        )
        for name in ("a", "b")
    )
    limits = tuple(
        Limit(
            draw(st.sampled_from(list(Scope))),
            max_gpus=draw(st.sampled_from([None, 1, 4])),
            max_jobs=draw(st.sampled_from([None, 1, 2])),
            qos=draw(st.sampled_from([None, "q"])),
        )
        for _ in range(draw(st.integers(0, 2)))
    )
    since = draw(st.integers(0, 15))
    held = Reservation("r", tuple(draw(subsets)), since, since + draw(st.integers(1, 12)))
    jobs = jobs.changed(
        partitions=column(NAMES),
        user=column(st.sampled_from(["x", "y"])),
        account=column(st.sampled_from(["m", "n"])),
        qos=column(st.sampled_from(["", "q"])),
        reservation=column(st.sampled_from(["", "", "", "r", "s"])),
        eligible=[int(at) + draw(st.sampled_from([0, 0, 5])) for at in jobs.submit],
        parent_of=draw(
            st.lists(
                st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(
                    lambda pair: pair[0] > pair[1]
                ),
                max_size=2,
            )
            if size > 1
            else st.just([])
        ),
    )
    cluster = replace(
        cluster,
        partitions=draw(st.sampled_from([(), partitions])),
        limits=limits,
        reservations=draw(st.sampled_from([(), (held,)])),
        headroom_gpus=draw(st.sampled_from([0, 0, 1])) if headroom else 0,
    )
    return jobs, cluster


@MANY
@given(st.data())
def test_partitions_limits_reservations_and_dependencies(data):
    rich = data.draw(st.booleans())
    cluster = data.draw(nodes_of(rich=rich))
    jobs, cluster = data.draw(ruled(data.draw(jobs_of(rich=rich)), cluster, headroom=False))
    same(jobs, cluster, data.draw(policies()))


@MANY
@given(st.data())
def test_headroom_on_top_of_everything(data):
    cluster = data.draw(nodes_of(rich=True))
    jobs = data.draw(jobs_of(rich=True, shares=True))
    jobs, cluster = data.draw(ruled(jobs, cluster, headroom=True))
    same(jobs, cluster, data.draw(policies(IN_ORDER, preemption=True)))


@pytest.mark.parametrize("policy", [Policy(backfill=one) for one in Backfill])
def test_no_jobs_at_all(policy):
    empty = np.zeros(0, np.int64)
    outcome = simulate(Jobs.build(submit=empty, run=empty, gpus=empty), Cluster.pool(4), policy)
    assert len(outcome.start) == 0


def test_a_gang_that_never_fits_again_gives_up_three_times_and_then_holds():
    """One of two nodes fails for good while the gang of both is due: nothing else happens."""
    jobs = Jobs.build(submit=[5], run=[9], gpus=[8])
    cluster = Cluster.uniform(2, 4)
    policy = Policy(gang=False, gang_timeout_s=3)
    down = replace(cluster, outages=(Outage(cluster.names[0], 0, None, OutageKind.FAIL),))
    same(jobs, down, policy)
    outcome = simulate(jobs, down, policy)
    assert outcome.state.tolist() == [1]  # pending
    assert outcome.last_instant == 5 + 3 * 3
    back = replace(cluster, outages=(Outage(cluster.names[0], 0, 50, OutageKind.FAIL),))
    same(jobs, back, policy)
    assert simulate(jobs, back, policy).start.tolist() == [50]


def test_tasks_and_a_rest_that_fit_only_apart_are_unplaceable_and_block_nobody():
    """4 + 1 GPUs on one node of 4 where the feature is: each fits, never side by side."""
    jobs = Jobs.build(submit=[0, 1], run=[9, 9], gpus=[5, 2], features=["f", ""])
    cluster = replace(
        Cluster.uniform(3, 4),
        gpus=np.array([4, 0, 1]),
        features=(frozenset({"f"}), frozenset(), frozenset()),
    )
    for placement in ("best-fit", "worst-fit", "random", "fgd"):
        for backfill in ("none", "easy"):
            policy = Policy(placement=Placement(placement), backfill=Backfill(backfill))
            same(jobs, cluster, policy)
            outcome = simulate(jobs, cluster, policy)
            assert outcome.state.tolist() == [2, 0]
            assert outcome.start[1] == 1


def test_a_child_that_is_due_when_its_parent_ends_is_queued_once():
    jobs = Jobs.build(submit=[0, 0], run=[5, 7], gpus=[1, 1], eligible=[0, 5], parent_of=[(1, 0)])
    for policy in (Policy(), Policy(gang=False), Policy(backfill=Backfill.CONSERVATIVE)):
        outcome = simulate(jobs, Cluster.uniform(1, 1), policy)
        assert outcome.start.tolist() == [0, 5]
        assert outcome.starts.tolist() == [1, 1]
        assert outcome.queue_s == 0
        assert outcome.held_gpu_s == 12


@MANY
@given(st.data())
def test_gang_off_holds_and_deadlocks(data):
    rich = data.draw(st.booleans())
    cluster = data.draw(nodes_of(rich=rich))
    jobs = data.draw(jobs_of(rich=rich, shares=rich))
    jobs, cluster = data.draw(ruled(jobs, cluster, headroom=True))
    cluster = replace(cluster, reservations=(), outages=data.draw(outages(cluster)))
    chosen = data.draw(policies((Backfill.NONE, Backfill.GREEDY)))
    chosen = replace(chosen, gang=False, gang_timeout_s=data.draw(st.sampled_from([0, 3, 9])))
    same(jobs, cluster, chosen)
    fast = simulate(jobs, cluster, chosen)
    assert fast.holding_gpu_s * 1000 == reference(jobs, cluster, chosen).holding_gpu_milli_s
