"""What the parts are for: each shown on a workload small enough to work out by hand."""

from __future__ import annotations

import numpy as np

from scheduler_advisor.engine import (
    Backfill,
    Cluster,
    Jobs,
    Policy,
    State,
    preset,
    simulate,
)

THREE_WEEKS = 21 * 86400


def test_one_long_job_ahead_of_dozens_of_short_ones_before_and_after_backfill():
    """A running job holds 4 of 8 GPUs for an hour; the 8-GPU job behind it blocks all the rest."""
    short = 48
    jobs = Jobs.build(
        submit=[0, 1, *range(2, 2 + short)],
        run=[3600, THREE_WEEKS, *[300] * short],
        gpus=[4, 8, *[1] * short],
    )
    fifo = simulate(jobs, Cluster.uniform(1, 8), preset("fifo"))
    easy = simulate(jobs, Cluster.uniform(1, 8), preset("easy"))
    assert fifo.first_start[2] >= 3600 + THREE_WEEKS
    assert easy.first_start[1] == fifo.first_start[1] == 3600
    started_before = easy.first_start[2:] < 3600
    assert started_before.sum() == 44  # 4 GPUs, 11 rounds of 300 s within the hour from second 2


def test_a_wide_job_starves_under_greedy_backfill_and_not_under_easy():
    small = 400
    jobs = Jobs.build(
        submit=[0, 1, *range(2, 2 + 10 * small, 10)],
        run=[15, 100, *[15] * small],
        gpus=[1, 2, *[1] * small],
    )
    cluster = Cluster.uniform(1, 2)
    greedy = simulate(jobs, cluster, preset("greedy"))
    easy = simulate(jobs, cluster, preset("easy"))
    assert easy.first_start[1] == 15
    assert greedy.first_start[1] > 3000


def test_without_gang_scheduling_two_jobs_hold_half_each_and_nobody_works():
    jobs = Jobs.build(submit=[0, 0, 5], run=[10, 10, 5], gpus=[4, 4, 1], tasks=[4, 4, 1])
    jobs = jobs.changed(gpus_per_task=[1, 1, 1])
    cluster = Cluster.build(gpus=[2, 2, 2])
    hold = Policy(gang=False, backfill=Backfill.GREEDY)
    stuck = simulate(jobs.take(np.array([0, 1])), cluster, hold)
    assert stuck.start[0] == 0  # the first gets its four tasks; the second holds two and waits
    wider = jobs.changed(gpus=[8, 8, 1], tasks=[8, 8, 1])
    both = simulate(wider.take(np.array([0])), Cluster.build(gpus=[4, 4]), hold)
    assert both.start[0] == 0


def test_a_deadlock_is_reported_holds_gpus_and_ends_when_patience_does():
    """Each node runs one long job on 1 of 2 GPUs; two gangs of 2 take one free GPU each."""
    jobs = Jobs.build(
        submit=[0, 0, 1, 2],
        run=[50, 50, 10, 10],
        gpus=[1, 1, 4, 4],
        tasks=[1, 1, 4, 4],
        gpus_per_task=[1, 1, 1, 1],
    )
    cluster = Cluster.build(gpus=[3, 3])
    gang = simulate(jobs, cluster, Policy(backfill=Backfill.GREEDY))
    assert gang.start[2] == 1
    assert gang.holding_gpu_s == 0
    # Three gangs of 4 on 6 GPUs: two fill the nodes partly, the third takes the last GPUs.
    many = Jobs.build(
        submit=[0, 1, 1], run=[20, 10, 10], gpus=[2, 4, 4], tasks=[1, 2, 2], gpus_per_task=[2, 2, 2]
    )
    two = Cluster.build(gpus=[2, 2])
    off = Policy(gang=False, backfill=Backfill.GREEDY)
    waits = simulate(many, two, off)
    assert waits.holding_gpu_s > 0
    assert waits.first_start[1] == 20
    assert not waits.deadlocks


def test_deadlock_of_two_half_placed_gangs():
    """Both GPUs' worth of nodes come free one by one, so that each gang holds one of two."""
    jobs = Jobs.build(
        submit=[0, 0, 1, 1],
        run=[10, 20, 5, 5],
        gpus=[2, 2, 3, 3],
        tasks=[1, 1, 3, 3],
        gpus_per_task=[2, 2, 1, 1],
    )
    jobs = jobs.changed(gpu_models=["a", "b", "a|b", "b|a"])
    cluster = Cluster.build(gpus=[2, 2], gpu_model=["a", "b"])
    off = Policy(gang=False, backfill=Backfill.GREEDY)
    on = simulate(jobs, cluster, Policy(backfill=Backfill.GREEDY))
    assert on.started.all()
    held = simulate(jobs, cluster, off)
    patient = simulate(jobs, cluster, off.with_values({"gang.timeout_s": 30}))
    assert patient.started.all()
    assert held.holding_gpu_s > on.holding_gpu_s == 0


def test_a_job_that_can_never_run_is_reported_and_not_waited_for():
    jobs = Jobs.build(submit=[0, 1], run=[5, 5], gpus=[9, 1])
    outcome = simulate(jobs, Cluster.pool(8), preset("fifo"))
    assert list(State)[outcome.state[0]] is State.UNPLACEABLE
    assert outcome.start[1] == 1


def test_two_more_nodes_fix_it_and_two_fewer_make_it_worse():
    jobs = Jobs.build(submit=[0] * 16, run=[100] * 16, gpus=[8] * 16)
    cluster = Cluster.uniform(4, 8)
    waits = [
        simulate(jobs, cluster.with_nodes(change), preset("fifo")).wait.mean()
        for change in (-2, 0, 4)
    ]
    assert waits == [350.0, 150.0, 50.0]


def test_a_share_of_a_gpu_goes_where_one_is_open_already():
    jobs = Jobs.build(submit=[0, 1, 2], run=[9, 9, 9], gpus=[1, 1, 1], gpu_milli=[500, 500, 1000])
    outcome = simulate(jobs, Cluster.build(gpus=[1, 1]), preset("fifo"))
    assert [outcome.nodes(job).tolist() for job in range(3)] == [[0], [0], [1]]
