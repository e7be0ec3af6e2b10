"""The parts' driver starts, stops, moves and resizes every job at the second that the slow one
does; with no part on, it agrees with the engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler_advisor.engine import Cluster, Jobs, Policy, PolicyError, simulate
from scheduler_advisor.engine.parts.fluid_run import check_fluid, simulate_fluid

SEEDS = st.integers(0, 100_000)
calm = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def by(policy, **keys):
    return policy.with_values({key.replace("__", "."): value for key, value in keys.items()})


@calm
@given(SEEDS)
def test_with_no_part_on_it_agrees_with_the_engine(world, seed):
    jobs, cluster, policy = world(seed)
    if policy.placement == "topology":
        policy = by(policy, placement="worst-fit")
    fast, fluid = simulate(jobs, cluster, policy), simulate_fluid(jobs, cluster, policy)
    if (fluid.state == 2).sum() != (fast.state == 2).sum():
        return  # a job whose tasks fit one by one and not together: the engine waits for it
    done = fast.started
    assert (fast.state == fluid.state).all()
    assert (fast.start[done] == fluid.start[done]).all()
    assert (fast.end[done] == fluid.end[done]).all()
    assert (fast.lost_s == fluid.lost_s).all()
    assert (fast.overhead_s == fluid.overhead_s).all()
    assert fast.held_gpu_s == pytest.approx(fluid.held_gpu_s)


@calm
@given(SEEDS, st.sampled_from(["mig", "mps", "time-slice", "none", "asked"]))
def test_shared_gpus_second_by_second(world, both, seed, kind):
    jobs, cluster, policy = world(seed, shares=True, services=True)
    policy = by(policy, sharing=kind, sharing__reconfigure_s=3, sharing__most=3)
    both(jobs, cluster, policy)


@calm
@given(SEEDS, st.sampled_from([0, 5]), st.sampled_from([0, 4]))
def test_elastic_jobs_second_by_second(world, both, seed, pause, every):
    jobs, cluster, policy = world(seed, elastic=True)
    policy = by(policy, elastic="resize", elastic__resize_s=pause, elastic__every_s=every)
    both(jobs, cluster, policy)


@calm
@given(SEEDS, st.sampled_from(["threshold", "hours"]))
def test_moves_second_by_second(world, both, seed, kind):
    jobs, cluster, policy = world(seed)
    jobs = jobs.changed(submit=np.asarray(jobs.submit) + 3590, eligible=jobs.eligible + 3590)
    cluster = replace(cluster, outages=())
    policy = by(policy, defrag=kind, defrag__hours="1", defrag__threshold=0.2, defrag__every_s=7)
    both(jobs, cluster, by(policy, defrag__min_gain=0.1), until=4200)


@calm
@given(SEEDS)
def test_all_parts_at_once_second_by_second(world, both, seed):
    jobs, cluster, policy = world(seed, shares=True, elastic=True, services=True)
    policy = by(
        policy, elastic="resize", elastic__resize_s=2, elastic__every_s=3, sharing="mps",
        defrag="threshold", defrag__threshold=0.1, defrag__every_s=9, defrag__min_gain=0.1,
        topology__slowdown="true",
    )  # fmt: skip
    both(jobs, cluster, policy)


def test_latency_work_never_lies_beside_throughput_work():
    jobs = Jobs.build(
        submit=[0, 0, 0], run=[10] * 3, gpus=[1] * 3, tasks=[1] * 3, gpu_milli=[300] * 3,
        latency_sensitive=[0, 1, 0],
    )  # fmt: skip
    one = Cluster.build(gpus=[1], gpu_model=["H100"])
    outcome = simulate_fluid(jobs, one, by(Policy(), sharing="mps", backfill="greedy"))
    assert outcome.start.tolist() == [0, outcome.end[0], 0]


def test_a_slice_waits_for_the_slices_that_are_in_its_way():
    """A 4g slice begins at slice 0 alone: two 3g jobs are in its way until the first ends."""
    jobs = Jobs.build(
        submit=[0, 1, 2], run=[50, 100, 10], gpus=[1] * 3, tasks=[1] * 3, gpu_milli=[429, 429, 572]
    )
    one = Cluster.build(gpus=[1], gpu_model=["H100"])
    outcome = simulate_fluid(jobs, one, by(Policy(), sharing="mig", sharing__reconfigure_s=0))
    assert outcome.start.tolist()[:2] == [0, 1]
    assert outcome.start[2] == outcome.end[1]  # the first 3g lies at 4, the second at 0


def test_a_gpu_cut_anew_rests_first():
    jobs = Jobs.build(submit=[0, 100], run=[10, 10], gpus=[1, 1], tasks=[1, 1], gpu_milli=[100, 0])
    jobs = jobs.changed(gpus_per_task=[0, 1])
    one = Cluster.build(gpus=[1], gpu_model=["H100"])
    outcome = simulate_fluid(jobs, one, by(Policy(), sharing="mig", sharing__reconfigure_s=30))
    assert (outcome.end - outcome.start).tolist() == [40, 40]
    assert outcome.paused_gpu_s == pytest.approx(30 * 0.125 + 30)


def test_an_elastic_job_grows_into_idle_gpus_and_gives_them_back():
    jobs = Jobs.build(
        submit=[0, 3000], run=[20_000, 1000], gpus=[2, 4], tasks=[2, 4], gpus_per_task=[1, 1],
        min_tasks=[2, 0], max_tasks=[8, 0],
    )  # fmt: skip
    eight = Cluster.uniform(1, 8)
    policy = by(Policy(), elastic="resize", elastic__efficiency_milli=1000, elastic__every_s=0)
    outcome = simulate_fluid(jobs, eight, by(policy, elastic__resize_s=0))
    # 40,000 task-seconds: 24,000 on 8 GPUs until 3,000, 4,000 on 4 until 4,000, the rest on 8.
    assert outcome.start.tolist() == [0, 3000]
    assert outcome.end.tolist() == [5500, 4000]
    assert outcome.resizes.tolist() == [3, 0]
    fixed = simulate_fluid(jobs, eight, by(policy, elastic="fixed", defrag="threshold"))
    assert fixed.end.tolist() == [20_000, 4000]


def test_a_service_is_short_by_the_minutes_that_its_replicas_wait():
    jobs = Jobs.build(
        submit=[0, 60, 120], run=[600, 600, 100], gpus=[1] * 3, tasks=[1] * 3,
        gpus_per_task=[1] * 3, service=[0, 1, 1],
    )  # fmt: skip
    outcome = simulate_fluid(jobs, Cluster.uniform(1, 1), Policy())
    assert outcome.start.tolist()[:2] == [0, 600]
    assert outcome.end[1] == 660
    assert outcome.short_replica_min == pytest.approx((540 + 100) / 60)
    assert outcome.state.tolist() == [0, 0, 1]


def test_what_the_driver_does_not_know_is_refused_by_name():
    jobs = Jobs.build(submit=[0], run=[1], gpus=[1])
    for keys, told in (
        ({"backfill": "conservative"}, "backfill conservative"),
        ({"placement": "random"}, "placement random"),
        ({"order": "las"}, "order las"),
        ({"preemption": "priority", "preemption__mode": "suspend"}, "suspend"),
    ):
        policy = by(Policy(), elastic="resize", **keys)
        with pytest.raises(PolicyError, match=told):
            check_fluid(jobs, Cluster.uniform(1, 1), policy)
    with pytest.raises(PolicyError, match=r"defrag\.hours"):
        check_fluid(jobs, Cluster.uniform(1, 1), by(Policy(), defrag="hours"))


def test_a_gang_over_several_nodes_moves_only_the_tasks_of_the_node_that_comes_free():
    """Node 0 holds two tasks of a gang whose other two fill node 1; node 2 has room for them. The
    whole gang stands still for the move."""
    jobs = Jobs.build(
        submit=[0, 0, 1], run=[100, 20_000, 20_000], gpus=[2, 2, 4], tasks=[1, 1, 2],
        gpus_per_task=[2, 2, 2], preemptible=[0, 1, 1], checkpoint_cost=[0, 10, 10],
        restore_cost=[0, 20, 20], distinct_nodes=[0, 0, 0],
    )  # fmt: skip
    three = Cluster.uniform(3, 4)
    policy = by(Policy(), placement="worst-fit", defrag="hours", defrag__hours="1")
    still = simulate_fluid(jobs, three, by(policy, defrag="none"))
    moved = simulate_fluid(jobs, three, policy)
    assert [still.nodes(job).tolist() for job in (1, 2)] == [[1], [2, 0]]
    assert [moved.nodes(job).tolist() for job in (1, 2)] == [[1], [2, 1]]
    assert moved.migrations.tolist() == [0, 0, 1]
    assert (moved.end - still.end).tolist() == [0, 0, 30]
    assert moved.paused_gpu_s == 4 * 30


def test_a_gang_that_must_stay_in_one_leaf_is_not_torn_apart_by_moves():
    jobs = Jobs.build(
        submit=[0, 0, 1], run=[100, 20_000, 20_000], gpus=[2, 2, 4], tasks=[1, 1, 2],
        gpus_per_task=[2, 2, 2], preemptible=[0, 1, 1], topology=["", "", "required:leaf"],
    )  # fmt: skip
    three = Cluster.build(gpus=[4] * 3, leaf=["a", "b", "a"])
    policy = by(Policy(), placement="topology", defrag="hours", defrag__hours="1")
    outcome = simulate_fluid(jobs, three, policy)
    assert outcome.migrations[2] == 0
    assert "b" not in {three.leaf[node] for node in outcome.nodes(2).tolist()}
