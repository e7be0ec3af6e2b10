"""The general driver and its slow reference start, stop and end every job at the same second."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
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
    PolicyError,
    Preemption,
    Scope,
    simulate,
)
from scheduler_advisor.engine.live.reference_run import live_reference
from scheduler_advisor.engine.live.run import run_live
from scheduler_advisor.engine.live.settings import (
    NO_QUOTA,
    Eligible,
    Entitlement,
    EvictionPart,
    FairPart,
    MultifactorPart,
    OrderPart,
    QueueRule,
    QuotaPart,
    Rank,
    Reach,
    Reclaim,
    Stop,
    Victims,
)
from scheduler_advisor.engine.parts.wired import may_never_end
from scheduler_advisor.engine.policy import STATIC_ORDERS
from scheduler_advisor.engine.shapes import fitted

pytestmark = pytest.mark.prove
PROVE = os.environ.get("UNSTRAND_PROVE") == "1"
EXAMPLES = int(os.environ.get("UNSTRAND_LIVE_EXAMPLES", "0"))
MANY = settings(
    max_examples=EXAMPLES or (800 if PROVE else 40),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=not EXAMPLES,
    phases=(Phase.generate,) if EXAMPLES else tuple(Phase),
)
IN_ORDER = (Backfill.NONE, Backfill.GREEDY, Backfill.EASY)
FIRST = [Placement.FIRST_FIT, Placement.BEST_FIT, Placement.WORST_FIT, Placement.CONSOLIDATE]


def some(values):
    return st.sampled_from(list(values))


def adds_up(outcome):
    """Every GPU-second is held, kept for somebody, free, or down; and what was held was work that
    counts, work that was lost, or the price of stopping and starting."""
    jobs, cluster = outcome.jobs, outcome.cluster
    span = outcome.last_instant - outcome.first_instant
    parts = outcome.held_gpu_s + outcome.holding_gpu_s + outcome.free_gpu_s + outcome.down_gpu_s
    assert parts == pytest.approx(cluster.total_gpus * span, abs=1e-6)
    if not cluster.outages:
        assert outcome.down_gpu_s == 0
    if (jobs.exclusive > 0).any():
        return  # holds whole nodes, whatever it asks for
    size = np.where(
        jobs.gpu_milli > 0,
        jobs.tasks * jobs.gpu_milli / 1000,
        jobs.tasks * jobs.gpus_per_task + jobs.rest_gpus,
    )
    seconds = jobs.run - outcome.left_s + outcome.lost_s + outcome.overhead_s
    assert float((size * seconds).sum()) == pytest.approx(outcome.held_gpu_s, abs=1e-6)


def same(jobs, cluster, policy):
    shaped = fitted(jobs, int(cluster.gpus.max(initial=0)))
    fast = run_live(shaped, cluster, policy)
    slow = live_reference(jobs, cluster, policy)
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
        assert fast.left_s[job] == slow.left_s[job], context
        assert fast.room_by[job] == slow.by[job], context
    adds_up(fast)
    return fast


@st.composite
def clusters(draw):
    size = draw(st.integers(1, 4))
    if draw(st.booleans()):  # nodes that say how much CPU and memory they have
        gpus = draw(some([1, 2, 4, 8]))
        return Cluster.build([gpus] * size, cpu_milli=[4000] * size, mem_mib=[400] * size)
    column = st.lists(st.integers(0, 4), min_size=size, max_size=size)
    return Cluster.build(
        gpus=draw(column),
        cpu_milli=[1000 * n for n in draw(column)],
        mem_mib=[100 * n for n in draw(column)],
    )


@st.composite
def workloads(draw, shares=False, exclusive=True, most=14):
    size = draw(st.integers(1, most))

    def column(values):
        return draw(st.lists(values, min_size=size, max_size=size))

    columns = {
        "submit": column(st.integers(0, 14)),
        "run": column(st.integers(0, 9)),
        "gpus": column(st.integers(0, 9)),
        "limit": column(st.integers(0, 14)),
        "priority": column(st.integers(-1, 2)),
        "preemptible": column(some([0, 1, 1])),
        "team": column(some(["a", "a", "b", "c", ""])),
        "user": column(some(["x", "y"])),
        "account": column(some(["m", "n"])),
        "qos": column(some(["", "q"])),
        "nice": column(some([0, 0, 3, -3])),
        "checkpoint_every": column(some([0, 2, 3])),
        "checkpoint_cost": column(some([0, 0, 1])),
        "restore_cost": column(some([0, 0, 1, 2])),
    }
    if draw(st.booleans()):
        columns |= {
            "tasks": column(st.integers(0, 3)),
            "gpus_per_task": column(st.integers(0, 3)),
            "cpu_milli": column(some([0, 0, 1000, 2000])),
            "mem_mib": column(some([0, 0, 100, 200])),
            "distinct_nodes": column(some([0, 0, 1])),
        }
        if exclusive:
            columns["exclusive"] = column(some([0, 0, 0, 1]))
    if shares:
        columns["gpu_milli"] = column(some([0, 0, 300, 500, 1000]))
    return Jobs.build(**columns)


@st.composite
def quotas(draw, reclaim=True):
    by = draw(some(["team", "team", "account/user", "user"]))
    names = {"team": ["a", "b", "c", "above"], "user": ["x", "y"]}.get(
        by, ["m", "n", "m/x", "m/y", "n/x"]
    )
    rules = []
    for name in names:
        if draw(st.booleans()):
            guarantee = draw(st.integers(0, 4))
            rules.append(
                QueueRule(
                    name,
                    guarantee=guarantee,
                    maximum=draw(some([None, None, guarantee, guarantee + 4])),
                    weight=draw(st.integers(0, 3)),
                    lend=draw(some([None, None, 0, 1])),
                    parent=draw(some(["", "above"])) if name in ("a", "b") else "",
                )
            )
    return QuotaPart(
        by=by,
        queues=tuple(rules),
        reclaim=draw(some(Reclaim)) if reclaim else Reclaim.NONE,
        reclaim_to=draw(some([Entitlement.GUARANTEE, Entitlement.TWO_STEP])),
        strict=draw(st.booleans()),
    )


@st.composite
def policies(draw, orders, **parts):
    fair = FairPart(
        half_life_s=draw(some([0, 5, 20])),
        period_s=draw(some([1, 3, 7])),
        entitlement=draw(some(Entitlement)),
    )
    weights = MultifactorPart(
        age=draw(some([0, 100])),
        fairshare=draw(some([0, 200])),
        size=draw(some([0, 50])),
        qos=draw(some([0, 70])),
        association=draw(some([0, 30])),
        tres_gpu=draw(some([0, 40])),
        tres_cpu=draw(some([0, 10])),
        site=draw(some([0, 10])),
        max_age_s=draw(some([4, 20])),
        favor_small=draw(st.booleans()),
        qos_priority=(("q", 5), ("r", 9)),
        account_priority=(("m", 1), ("n", 2)),
    )
    policy = Policy(
        order=draw(some(orders)),
        backfill=draw(some(IN_ORDER)),
        backfill_depth=draw(some([0, 0, 1, 3])),
        backfill_max_limit_s=draw(some([0, 0, 6])),
        placement=draw(some(FIRST)),
        backfill_interval_s=draw(some([0, 0, 0, 4])),
        fair=fair,
        multifactor=weights,
        ordering=OrderPart(
            learn_from=draw(st.integers(1, 3)), las_level_gpu_s=draw(some(["", "3|9", "10"]))
        ),
        **parts,
    )
    if may_never_end(policy):
        return replace(policy, eviction=replace(policy.eviction, max_per_job=1))
    return policy


@st.composite
def evictions(draw, timed):
    return EvictionPart(
        victims=draw(some(Victims)),
        by=draw(some([Rank.PRIORITY, Rank.PRIORITY, Rank.TIER])),
        reach=draw(some(Reach)),
        eligible=draw(some(Eligible)),
        mode=draw(some(Stop if timed else [Stop.REQUEUE, Stop.SCRATCH])),
        min_run_s=draw(some([0, 0, 2])),
        max_per_job=draw(some([0, 0, 1])),
        max_per_hour=draw(some([0, 0, 1, 2])),
        max_team_gpus_per_hour=draw(some([0, 0, 2])),
        grace_s=draw(some([0, 0, 1, 3])) if timed else 0,
        **(draw(some([{}, {"gib_per_gpu": 2, "storage_gib_s": 3}])) if timed else {}),
    )


@MANY
@given(st.data())
def test_every_order_that_changes_equals_the_reference(data):
    same(data.draw(workloads()), data.draw(clusters()), data.draw(policies(list(Order))))


@MANY
@given(st.data())
def test_quotas_with_borrowing_lending_and_queues_below_queues_equal_the_reference(data):
    policy = data.draw(policies(list(Order), quota=data.draw(quotas(reclaim=False))))
    same(data.draw(workloads()), data.draw(clusters()), policy)


@MANY
@given(st.data())
def test_preemption_and_reclaim_at_once_equal_the_reference(data):
    policy = data.draw(
        policies(
            list(Order),
            quota=data.draw(quotas()),
            eviction=data.draw(evictions(timed=False)),
            preemption=data.draw(some(Preemption)),
        )
    )
    same(data.draw(workloads(shares=data.draw(st.booleans()))), data.draw(clusters()), policy)


@MANY
@given(st.data())
def test_preemption_that_takes_time_equals_the_reference(data):
    policy = data.draw(
        policies(
            list(Order),
            quota=data.draw(quotas()),
            eviction=data.draw(evictions(timed=True)),
            preemption=data.draw(some(Preemption)),
        )
    )
    exclusive = policy.eviction.mode is not Stop.SUSPEND
    same(data.draw(workloads(exclusive=exclusive)), data.draw(clusters()), policy)


@MANY
@given(st.data())
def test_whole_node_plans_equal_the_reference(data):
    policy = data.draw(
        policies(
            list(Order),
            eviction=data.draw(evictions(timed=True)),
            preemption=data.draw(some(Preemption)),
        )
    )
    policy = replace(policy, backfill=Backfill.EASY, backfill_whole_nodes=True)
    exclusive = policy.eviction.mode is not Stop.SUSPEND
    same(data.draw(workloads(exclusive=exclusive)), data.draw(clusters()), policy)


@MANY
@given(st.data())
def test_partitions_limits_dependencies_and_outages_equal_the_reference(data):
    cluster, jobs = data.draw(clusters()), data.draw(workloads())
    size = len(jobs)
    subsets = st.lists(some(cluster.names), min_size=1, max_size=3, unique=True)
    partitions = tuple(
        Partition(name, tuple(data.draw(subsets)), tier=data.draw(st.integers(0, 1)),
                  default=name == "a")
        for name in ("a", "b")
    )  # fmt: skip
    outages = tuple(
        Outage(
            data.draw(some(cluster.names)),
            down,
            data.draw(some([None, down + 1, down + 5])),
            data.draw(some(OutageKind)),
        )
        for down in data.draw(st.lists(st.integers(0, 20), max_size=2))
    )
    limits = tuple(
        Limit(data.draw(some(Scope)), max_gpus=data.draw(some([None, 2, 4])), max_jobs=most)
        for most in data.draw(st.lists(some([None, 1, 2]), max_size=1))
    )
    names = data.draw(st.lists(some(["", "a", "b", "a|b"]), min_size=size, max_size=size))
    parents = [] if size < 2 else [(size - 1, 0)]
    jobs = jobs.changed(partitions=names, parent_of=data.draw(some([[], parents])))
    cluster = replace(cluster, partitions=partitions, outages=outages, limits=limits)
    policy = data.draw(
        policies(
            list(Order),
            quota=data.draw(quotas()),
            eviction=data.draw(evictions(timed=False)),
            preemption=data.draw(some(Preemption)),
        )
    )
    same(jobs, cluster, policy)


@st.composite
def crowded(draw):
    """Long jobs fill two or three nodes; more important ones come; nodes go at any moment."""
    size, nodes = draw(st.integers(3, 9)), draw(st.integers(2, 3))

    def column(values):
        return draw(st.lists(values, min_size=size, max_size=size))

    jobs = Jobs.build(
        submit=[at // 2 for at in range(size)],
        run=column(st.integers(5, 25)),
        gpus=[1] * size,
        tasks=[2, *column(st.integers(1, 2))[1:]],
        gpus_per_task=column(st.integers(1, 2)),
        mem_mib=column(some([0, 100])),
        limit=column(st.integers(5, 30)),
        priority=[0, 0, *column(st.integers(0, 3))[2:]],
        team=column(some(["a", "b"])),
        checkpoint_every=column(some([0, 3])),
        checkpoint_cost=column(some([0, 1])),
        restore_cost=column(some([0, 1])),
    )
    cluster = Cluster.build([2] * nodes, cpu_milli=[4000] * nodes, mem_mib=[400] * nodes)
    outages = tuple(
        Outage(
            draw(some(cluster.names)),
            down,
            down + draw(st.integers(1, 6)),
            draw(some([OutageKind.FAIL, OutageKind.FAIL, OutageKind.DRAIN])),
        )
        for down in draw(st.lists(st.integers(1, 20), min_size=1, max_size=5, unique=True))
    )
    return jobs, replace(cluster, outages=outages)


@MANY
@given(st.data())
def test_nodes_that_fail_or_drain_while_jobs_are_leaving_equal_the_reference(data):
    jobs, cluster = data.draw(crowded())
    mode = data.draw(some([Stop.SUSPEND, Stop.CHECKPOINT, Stop.REQUEUE]))
    policy = Policy(
        order=data.draw(some([Order.PRIORITY, Order.PRIORITY, Order.FAIR_SHARE, Order.LAS])),
        backfill=data.draw(some(IN_ORDER)),
        placement=data.draw(some(FIRST)),
        preemption=Preemption.PRIORITY,
        quota=data.draw(some([NO_QUOTA, QuotaPart(reclaim=Reclaim.LOOSE)])),
        eviction=EvictionPart(
            eligible=Eligible.ALL,
            victims=data.draw(some(Victims)),
            mode=mode,
            grace_s=data.draw(st.integers(0, 4)),
            **({"gib_per_gpu": 4, "storage_gib_s": 1} if mode is Stop.CHECKPOINT else {}),
        ),
    )
    same(jobs, cluster, policy)


@MANY
@given(st.data())
def test_static_policies_are_the_same_by_the_general_driver_and_by_the_fast_one(data):
    jobs, cluster = data.draw(workloads()), data.draw(clusters())
    policy = replace(
        data.draw(policies(STATIC_ORDERS, preemption=data.draw(some(Preemption)))),
        backfill_interval_s=0,
    )
    assert not policy.live
    fast = simulate(jobs, cluster, policy)
    general = run_live(fitted(jobs, int(cluster.gpus.max(initial=0))), cluster, policy)
    for column in ("starts", "state", "preemptions", "lost_s", "overhead_s"):
        assert getattr(fast, column).tolist() == getattr(general, column).tolist(), column
    done = fast.started
    for column in ("first_start", "start", "end"):
        assert getattr(fast, column)[done].tolist() == getattr(general, column)[done].tolist()


def test_combinations_without_a_meaning_are_refused_with_the_reason():
    with pytest.raises(PolicyError, match="gang = false goes with static orders"):
        Policy(order=Order.DRF, gang=False)
    with pytest.raises(PolicyError, match="conservative backfill plans an order"):
        Policy(order=Order.LAS, backfill=Backfill.CONSERVATIVE)
    with pytest.raises(PolicyError, match="backfill easy"):
        Policy(backfill_whole_nodes=True)
    with pytest.raises(PolicyError, match="below its guarantee"):
        Policy(quota=QuotaPart(queues=(QueueRule("a", guarantee=4, maximum=3),)))
    with pytest.raises(PolicyError, match="lies below itself"):
        QuotaPart(queues=(QueueRule("a", parent="b"), QueueRule("b", parent="a")))
    with pytest.raises(PolicyError, match="lies below itself"):
        QuotaPart(queues=(QueueRule("a", parent="a/b"),))
    with pytest.raises(PolicyError, match=r"needs preemption\.storage_gib_s"):
        Policy(eviction=EvictionPart(gib_per_gpu=1))
    jobs = Jobs.build(submit=[0], run=[5], gpus=[1], gpu_milli=[500])
    timed = Policy(preemption=Preemption.PRIORITY, eviction=EvictionPart(grace_s=5))
    with pytest.raises(PolicyError, match="takes time, or suspends, knows whole GPUs only"):
        simulate(jobs, Cluster.uniform(1, 2), timed)
