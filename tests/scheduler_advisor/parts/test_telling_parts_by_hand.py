"""By hand: what the tellings of parts of GPUs and of the network found."""

from __future__ import annotations

import pytest

from scheduler_advisor.engine import Cluster, Jobs, Policy, simulate
from scheduler_advisor.engine.parts.levels import tree_of

MILLION = 1_000_000


def policy(**keys):
    return Policy().with_values({key.replace("__", "."): value for key, value in keys.items()})


def cards(*gpus):
    return Cluster.build(gpus=list(gpus), gpu_model=["H100"] * len(gpus))


@pytest.mark.parametrize(("kind", "end"), [("mps", 104), ("time-slice", 105)])
def test_two_tasks_of_one_job_on_one_gpu_are_neighbours(kind, end):
    """Each slows the other: by 10% of its 400 thousandths of bandwidth, or by one switch."""
    jobs = Jobs.build(
        submit=[0, 0], run=[100, 100], gpus=[1, 1], tasks=[2, 1], gpu_milli=[400, 900]
    )
    outcome = simulate(jobs, cards(1), policy(sharing=kind))
    assert outcome.end.tolist() == [end, end + 100]


@pytest.mark.parametrize("kind", ["asked", "mig", "mps", "time-slice"])
def test_tasks_that_want_a_node_each_get_one_for_their_parts_too(kind):
    jobs = Jobs.build(
        submit=[0], run=[10], gpus=[1], tasks=[2], gpu_milli=[125], distinct_nodes=[1]
    )
    outcome = simulate(jobs, cards(2, 2), policy(sharing=kind, defrag="threshold"))
    assert outcome.nodes(0).tolist() == [0, 1]


def test_a_gang_that_found_no_place_has_cut_nothing():
    """The second job wants two whole slices and finds one GPU; the third cuts that GPU itself."""
    jobs = Jobs.build(
        submit=[0, 0, 5], run=[100, 10, 10], gpus=[1, 1, 1], tasks=[1, 2, 1],
        gpus_per_task=[1, 0, 0], gpu_milli=[0, 600, 600],
    )  # fmt: skip
    outcome = simulate(jobs, cards(2), policy(sharing="mig", backfill="greedy"))
    assert outcome.start.tolist() == [0, 100, 5]
    assert outcome.end.tolist() == [100, 100 + 60 + 10, 5 + 60 + 10]


def test_a_slice_counts_in_its_quota_as_what_it_is():
    """600 thousandths are served by all of a GPU: with an eighth of another that is over one."""
    jobs = Jobs.build(
        submit=[0, 0], run=[10, 10], gpus=[1, 1], gpu_milli=[125, 600], team=["a", "a"]
    )
    limited = policy(sharing="mig", quota__queues__a__guarantee=1, quota__queues__a__maximum=1)
    outcome = simulate(jobs, cards(2), limited)
    assert outcome.start.tolist() == [0, 70]


def test_without_sharing_a_part_counts_in_its_quota_as_the_gpu_that_it_takes():
    """Two tasks take two GPUs; the queue may have one."""
    jobs = Jobs.build(
        submit=[0, 0], run=[10, 10], gpus=[1, 1], tasks=[2, 1], gpu_milli=[400, 400],
        team=["a", "a"],
    )  # fmt: skip
    limited = policy(sharing="none", quota__queues__a__guarantee=1, quota__queues__a__maximum=1)
    outcome = simulate(jobs, cards(2), limited)
    assert outcome.starts.tolist() == [0, 1]


def test_growing_onto_idle_slices_rests_while_they_are_cleared_away():
    """At 70 s (60 to cut, 10 to run) the slice is idle: 5 s to resize and 60 to clear it, then the
    930 s that are left at twice the speed."""
    jobs = Jobs.build(
        submit=[0, 0], run=[1000, 10], gpus=[1, 1], tasks=[1, 1], gpus_per_task=[1, 0],
        gpu_milli=[0, 125], min_tasks=[1, 0], max_tasks=[2, 0],
    )  # fmt: skip
    grows = policy(sharing="mig", elastic="resize", elastic__resize_s=5, elastic__every_s=0)
    outcome = simulate(jobs, cards(2), grows.with_values({"elastic.efficiency_milli": 1000}))
    assert outcome.end.tolist() == [70 + 65 + 465, 70]


def test_moving_onto_idle_slices_rests_while_they_are_cleared_away():
    """The slice of the second job is idle from 80 s on. At 3,600 s the third job moves beside the
    first, onto that GPU: 30 s for the move, 60 to clear the slice."""
    jobs = Jobs.build(
        submit=[0, 10, 20], run=[9000, 10, 9000], gpus=[1, 1, 1], tasks=[1, 1, 1],
        gpus_per_task=[1, 0, 1], gpu_milli=[0, 125, 0], preemptible=[0, 0, 1],
        checkpoint_cost=[0, 0, 10], restore_cost=[0, 0, 20],
    )  # fmt: skip
    moves = policy(
        sharing="mig", placement="worst-fit", defrag="hours", defrag__hours="1",
        defrag__min_gain=0.1,
    )  # fmt: skip
    outcome = simulate(jobs, cards(2, 2), moves)
    assert outcome.migrations.tolist() == [0, 0, 1]
    assert outcome.end[2] == 20 + 9000 + 30 + 60


def test_a_job_that_wants_a_node_for_each_task_speaks_for_nobody_else():
    """It waits for a second node; the next one takes the two GPUs that are free on the first."""
    jobs = Jobs.build(
        submit=[0, 1, 1], run=[100, 10, 10], gpus=[2, 2, 2], tasks=[1, 2, 2],
        gpus_per_task=[2, 1, 1], distinct_nodes=[0, 1, 0],
    )  # fmt: skip
    outcome = simulate(jobs, cards(2, 2), policy(backfill="greedy", defrag="threshold"))
    assert outcome.start.tolist() == [0, 100, 1]


@pytest.mark.parametrize("driver", ["compiled", "plain"])
def test_the_best_place_of_tasks_on_a_node_each_is_not_that_of_others(driver):
    """Both lie as well as they can: one on one node, the other on two of a leaf."""
    jobs = Jobs.build(
        submit=[0, 0], run=[100, 100], gpus=[2, 2], tasks=[2, 2], gpus_per_task=[1, 1],
        distinct_nodes=[0, 1], comm_milli=[300, 300],
    )  # fmt: skip
    keys = {"placement": "topology", "topology__slowdown": True}
    keys |= {"defrag": "threshold"} if driver == "plain" else {}
    outcome = simulate(jobs, cards(4, 4), policy(**keys))
    assert [len(set(outcome.nodes(job).tolist())) for job in (0, 1)] == [1, 2]
    assert outcome.slow_ppm.tolist() == [MILLION, MILLION]
    assert outcome.end.tolist() == [100, 100]


def test_racks_under_the_only_leaf_are_no_wider_domain():
    """One leaf over two racks is one domain, as it is where there are several leaves."""
    cluster = Cluster.build(gpus=[4, 4], leaf=["l", "l"], spine=["s", "s"], rack=["a", "b"])
    tree = tree_of(cluster)
    assert tree.leaf.tolist() == tree.spine.tolist() == tree.block.tolist() == [0, 0]
