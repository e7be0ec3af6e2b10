"""Moves, consolidation, resizing and services beside quotas, EASY and preemption: the plain driver
starts, stops, moves and resizes every job at the second and on the nodes that a second telling
does, which shares no code with it (`telling/`). What that found stands below by hand."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from telling_draw import (
    cluster_of,
    happened,
    on_a_network,
    policy_of,
    sharing_of,
    with_parts,
    workload,
)

from scheduler_advisor.engine import (
    Cluster,
    Jobs,
    Outage,
    OutageKind,
    Policy,
    PolicyError,
    Reservation,
    preset,
    simulate,
)

PROVE = os.environ.get("UNSTRAND_PROVE") == "1"
SEEDS = st.integers(0, 1_000_000)
MANY = settings(
    max_examples=5000 if PROVE else 120,
    deadline=None,
    derandomize=not PROVE,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def world(seed, timed, elastic):
    """The generator, and a site drawn with it: jobs, cluster, policy."""
    draw = np.random.default_rng(seed)
    cluster = cluster_of(draw, timed)
    elastic = elastic and cluster.headroom_gpus == 0
    return draw, workload(draw, elastic), cluster, policy_of(draw, timed, elastic)


def test_parts_beside_quotas_and_preemption_second_by_second(told, record_proof):
    seen = Counter()

    @MANY
    @given(SEEDS, st.booleans(), st.booleans())
    def every(seed, timed, elastic):
        _, *site = world(seed, timed, elastic)
        seen.update(happened(told(*site)))

    every()
    record_proof("telling", **seen)


SHARINGS = ("asked", "none", "mig", "mps", "time-slice")


def test_parts_of_gpus_alone_and_beside_quotas_second_by_second(told, record_proof):
    seen = Counter()

    @MANY
    @given(SEEDS, st.sampled_from(SHARINGS), st.booleans(), st.booleans())
    def every(seed, kind, alone, elastic):
        draw, jobs, cluster, policy = world(seed, False, elastic)
        models = ["H100", "H100", "NVIDIA A100-SXM4-80GB", "NVIDIA A30", "Tesla T4"]
        cluster = replace(cluster, gpu_model=tuple(draw.choice(models, len(cluster)).tolist()))
        if alone:
            policy = Policy().with_values({"placement": str(policy.placement)})
        jobs = with_parts(draw, jobs)
        seen.update(happened(told(jobs, cluster, sharing_of(draw, policy, kind))))
        seen[kind] += 1

    every()
    record_proof("telling_parts", **seen)


def test_placement_by_the_network_second_by_second(told, record_proof):
    seen = Counter()

    @MANY
    @given(SEEDS, st.booleans(), st.booleans())
    def every(seed, timed, elastic):
        draw, jobs, cluster, policy = world(seed, timed, elastic)
        jobs, cluster, policy = on_a_network(draw, jobs, cluster, policy)
        seen.update(happened(told(jobs, cluster, policy)))
        seen[str(policy.placement)] += 1

    every()
    record_proof("telling_network", **seen)


# By hand: what the telling found


def by_rank(**keys):
    values = {key.replace("__", "."): value for key, value in keys.items()}
    return Policy().with_values({"order": "priority", "preemption": "priority", **values})


def test_a_grown_job_that_is_stopped_has_lost_work_and_no_negative_overhead():
    """On four GPUs it does 40 s of its work in 10 s; nothing of it was written or read."""
    jobs = Jobs.build(
        submit=[0, 10], run=[100, 5], gpus=[1, 4], tasks=[1, 1], gpus_per_task=[1, 4],
        min_tasks=[1, 0], max_tasks=[4, 0], priority=[0, 1], preemptible=[1, 0],
    )  # fmt: skip
    policy = by_rank(elastic="resize", elastic__resize_s=0, elastic__every_s=0)
    policy = policy.with_values({"elastic.efficiency_milli": 1000})
    outcome = simulate(jobs, Cluster.uniform(1, 4), policy)
    assert outcome.lost_s.tolist() == [40, 0]
    assert outcome.overhead_s.tolist() == [0, 0]
    assert outcome.end.tolist() == [15 + 25, 15]


def test_a_move_is_no_overhead_of_the_attempt_that_it_interrupts():
    """A pause of 30 s for the move is counted as paused; stopped at 3,700 s, 3,670 s are lost."""
    jobs = Jobs.build(
        submit=[0, 0, 3700], run=[9000, 9000, 5], gpus=[2, 2, 8], priority=[0, 0, 1],
        preemptible=[1, 1, 0], checkpoint_cost=[10, 10, 0], restore_cost=[20, 20, 0],
    )  # fmt: skip
    policy = by_rank(placement="worst-fit", defrag="hours", defrag__hours="1")
    outcome = simulate(jobs, Cluster.uniform(2, 4), policy)
    assert outcome.migrations.tolist() == [1, 0, 0]
    assert outcome.lost_s.tolist() == [3670, 3700, 0]
    assert outcome.overhead_s.tolist() == [0, 0, 0]
    assert outcome.paused_gpu_s == 2 * 30


def test_a_job_with_one_task_per_node_does_not_grow_onto_its_own_node():
    jobs = Jobs.build(
        submit=[0], run=[100], gpus=[1], tasks=[1], gpus_per_task=[1], min_tasks=[1],
        max_tasks=[4], distinct_nodes=[1],
    )  # fmt: skip
    policy = Policy().with_values({"elastic": "resize", "elastic.resize_s": 0})
    policy = policy.with_values({"elastic.every_s": 0})
    outcome = simulate(jobs, Cluster.uniform(2, 4), policy)
    assert outcome.nodes(0).tolist() == [0, 1]


def test_an_elastic_job_grows_only_within_the_leaf_that_it_requires():
    jobs = Jobs.build(
        submit=[0], run=[100], gpus=[1], tasks=[1], gpus_per_task=[1], min_tasks=[1],
        max_tasks=[6], topology=["required:leaf"],
    )  # fmt: skip
    policy = Policy().with_values({"elastic": "resize", "placement": "topology"})
    policy = policy.with_values({"elastic.resize_s": 0, "elastic.every_s": 0})
    three = Cluster.build(gpus=[2, 4, 2], leaf=["x", "y", "x"])
    outcome = simulate(jobs, three, policy)
    assert sorted(outcome.nodes(0).tolist()) == [0, 0, 2, 2]


def test_who_is_told_to_leave_gives_no_gpus_to_a_third():
    """The first job's four GPUs are promised to the second; the third waits for the second."""
    jobs = Jobs.build(
        submit=[0, 10, 15], run=[100, 50, 5], gpus=[4, 4, 1], tasks=[4, 1, 1],
        gpus_per_task=[1, 4, 1], min_tasks=[1, 0, 0], max_tasks=[4, 0, 0], priority=[0, 1, 1],
        preemptible=[1, 0, 0],
    )  # fmt: skip
    policy = by_rank(elastic="resize", elastic__every_s=0, preemption__grace_s=20)
    outcome = simulate(jobs, Cluster.uniform(1, 4), policy)
    assert outcome.start.tolist()[1:] == [30, 80]
    assert outcome.resizes[0] == 0 or outcome.first_start[0] == 0
    assert outcome.preemptions.tolist() == [1, 0, 0]


def test_who_is_told_to_leave_is_not_moved_before_it_goes():
    """At 3,600 s a pass of moves would empty the first node, but its job goes at 3,610 s."""
    jobs = Jobs.build(
        submit=[0, 0, 3590], run=[9000, 9000, 50], gpus=[2, 2, 3], priority=[0, 2, 1],
        preemptible=[1, 0, 0],
    )  # fmt: skip
    policy = by_rank(
        placement="worst-fit", preemption__grace_s=20, defrag="hours", defrag__hours="1"
    )
    outcome = simulate(jobs, Cluster.uniform(2, 4), policy)
    assert outcome.preemptions.tolist() == [1, 0, 0]
    assert outcome.start[2] == 3610
    assert outcome.migrations.tolist() == [0, 0, 0]


def test_stopping_a_job_on_a_drained_node_frees_nothing():
    """Two GPUs are free and one must stay so: the third job waits for the second to end. The first
    lies on a node that takes nobody, and is left alone."""
    jobs = Jobs.build(
        submit=[0, 0, 10], run=[200, 100, 20], gpus=[2, 2, 2], priority=[0, 0, 1],
        preemptible=[1, 0, 0],
    )  # fmt: skip
    two = Cluster.build(
        gpus=[2, 4],
        headroom_gpus=1,
        outages=(Outage("n00000", 5, 300, OutageKind.DRAIN),),
    )
    for defrag in ("threshold", "pending"):
        outcome = simulate(jobs, two, by_rank(defrag=defrag))
        assert outcome.preemptions.tolist() == [0, 0, 0]
        assert outcome.start.tolist() == [0, 0, 100]


def test_a_replica_whose_time_goes_by_while_others_leave_for_it_never_starts():
    jobs = Jobs.build(
        submit=[0, 10], run=[100, 15], gpus=[4, 4], priority=[0, 1], preemptible=[1, 0],
        service=[0, 1],
    )  # fmt: skip
    outcome = simulate(jobs, Cluster.uniform(1, 4), by_rank(preemption__grace_s=20))
    assert outcome.starts.tolist() == [2, 0]
    assert outcome.start[0] == 30
    assert outcome.short_replica_min == 15 / 60


def test_kai_consolidates_on_a_cluster_with_a_reservation_and_not_into_it():
    """Two half-used nodes: the job of four GPUs has one emptied. The third node is free and would
    take the job that moves, but is kept for others from 3,000 s on."""
    jobs = Jobs.build(
        submit=[0, 0, 1000, 1000], run=[5000, 6000, 2500, 100], gpus=[2, 2, 4, 1],
        preemptible=[1, 1, 0, 0], reservation=["", "", "", "kept"],
        team=["a", "b", "c", "c"],
    )  # fmt: skip
    kept = Reservation("kept", ("n00002",), 3000, 3500)
    three = Cluster.build(gpus=[4, 4, 4], reservations=(kept,))
    policy = preset("kai").with_values({"placement": "worst-fit"})
    outcome = simulate(jobs, three, policy)
    assert outcome.migrations.tolist() == [0, 1, 0, 0]
    assert [outcome.nodes(job).tolist() for job in range(4)] == [[0], [0], [1], [2]]
    assert outcome.start.tolist() == [0, 1000, 1000, 3000]


def test_an_exclusive_job_that_moves_has_its_next_node_to_itself():
    """It holds both GPUs of the first node for the one that it asks for; the second node is in use
    and no home for it, the third is."""
    jobs = Jobs.build(
        submit=[0, 0, 10], run=[500, 500, 100], gpus=[1, 1, 2], exclusive=[1, 0, 0],
        preemptible=[1, 0, 0], cpu_milli=[1, 1, 8],
    )  # fmt: skip
    three = Cluster.build(gpus=[2, 2, 2], cpu_milli=[8, 8, 4])
    policy = Policy().with_values({"placement": "first-fit", "defrag": "pending"})
    outcome = simulate(jobs, three, policy.with_values({"defrag.every_s": 0}))
    assert outcome.migrations.tolist() == [1, 0, 0]
    assert [outcome.nodes(job).tolist() for job in range(3)] == [[2], [1], [0]]
    assert outcome.held_gpu_s == 2 * 510 + 500 + 2 * 100


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"order": "multifactor"}, "set order to one of fifo, priority"),
        ({"gang": "false"}, "set gang=true"),
        ({"preemption": "priority", "preemption.mode": "suspend"}, "preemption.mode=requeue"),
        ({"preemption": "priority", "preemption.grace_s": 5}, "set preemption.grace_s=0"),
    ],
)
def test_what_is_refused_says_in_one_line_which_key_to_change(keys, told):
    jobs = Jobs.build(submit=[0], run=[1], gpus=[1])
    away = Outage("n00000", 5, 9, OutageKind.FAIL)
    one = Cluster.build(gpus=[1], outages=(away,))
    with pytest.raises(PolicyError, match=told) as refused:
        simulate(jobs, one, Policy().with_values({"defrag": "threshold", **keys}))
    assert "\n" not in str(refused.value)
