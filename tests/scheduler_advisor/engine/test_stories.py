"""What the parts are for: each shown on a workload small enough to work out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler_advisor.engine import (
    Backfill,
    Cluster,
    Deadlock,
    Jobs,
    Order,
    Policy,
    State,
    preset,
    simulate,
)
from scheduler_advisor.engine.outcome import STATES
from scheduler_advisor.engine.reference import reference

GANG_OFF = Policy(gang=False, backfill=Backfill.GREEDY)
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


def test_without_gang_scheduling_a_job_holds_what_it_cannot_use_yet():
    """Four GPUs, one busy for 10 s: the gang of four takes three of them and waits with them."""
    jobs = Jobs.build(submit=[0, 1], run=[10, 5], gpus=[1, 4], tasks=[1, 4], gpus_per_task=[1, 1])
    outcome = simulate(jobs, Cluster.uniform(1, 4), GANG_OFF)
    assert outcome.start.tolist() == [0, 10]
    assert outcome.holding_gpu_s == 3 * (10 - 1)
    assert outcome.deadlocks == ()


@pytest.fixture
def half_placed():
    """Two nodes of 2 GPUs; a job holds 1 GPU until second 10. The gang of 2 x 2 GPUs fills the
    free node, the gang of 3 x 1 takes the GPU left on the other: each now needs what the other
    holds, whatever else ends.
    """
    jobs = Jobs.build(
        submit=[0, 1, 2], run=[10, 5, 5], gpus=[1, 4, 3], tasks=[1, 2, 3], gpus_per_task=[1, 2, 1]
    )
    return jobs, Cluster.uniform(2, 2)


def test_two_half_placed_gangs_deadlock_and_hold_all_gpus_for_ever(half_placed):
    jobs, cluster = half_placed
    outcome = simulate(jobs, cluster, GANG_OFF)
    assert outcome.deadlocks == (Deadlock(at=2, jobs=2, held_gpus=3.0),)
    assert outcome.started.tolist() == [True, False, False]
    assert [STATES[state] for state in outcome.state[1:]] == [State.PENDING] * 2
    # Until the last instant: 2 GPUs since second 1 and 1 GPU since second 2.
    assert outcome.last_instant == 10
    assert outcome.holding_gpu_s == 2 * (10 - 1) + 1 * (10 - 2)
    assert outcome.deadlocks == deadlocks_of_the_reference(jobs, cluster, GANG_OFF)


def test_gang_scheduling_keeps_the_same_two_gangs_from_deadlock(half_placed):
    jobs, cluster = half_placed
    outcome = simulate(jobs, cluster, Policy(backfill=Backfill.GREEDY))
    assert outcome.started.all()
    assert outcome.start.tolist() == [0, 10, 2]
    assert outcome.deadlocks == ()
    assert outcome.holding_gpu_s == 0


def test_the_stated_timeout_breaks_the_deadlock(half_placed):
    """The first gang has held since second 1: 30 s later it gives up, the other takes what it
    lacks at once, and the first starts when that one has ended.
    """
    jobs, cluster = half_placed
    patient = GANG_OFF.with_values({"gang.timeout_s": 30})
    outcome = simulate(jobs, cluster, patient)
    assert outcome.deadlocks == (Deadlock(at=2, jobs=2, held_gpus=3.0),)
    assert outcome.started.all()
    assert outcome.start.tolist() == [0, 36, 31]
    # The first: 2 GPUs in 1..31. The second: its GPUs since seconds 2 and 10, until 31.
    assert outcome.holding_gpu_s == 2 * 30 + (31 - 2) + (31 - 10)
    assert outcome.deadlocks == deadlocks_of_the_reference(jobs, cluster, patient)


def test_an_urgent_gang_and_the_one_it_overtook_deadlock_on_equal_tasks():
    """Four GPUs, one busy until second 10. A gang of four holds three; an urgent gang of four,
    which came later, is first in line for the fourth.
    """
    jobs = Jobs.build(
        submit=[0, 1, 2],
        run=[10, 5, 5],
        gpus=[1, 4, 4],
        tasks=[1, 4, 4],
        gpus_per_task=[1, 1, 1],
        priority=[0, 0, 1],
    )
    cluster = Cluster.uniform(1, 4)
    urgent_first = replace(GANG_OFF, order=Order.PRIORITY)
    stuck = simulate(jobs, cluster, urgent_first)
    assert stuck.deadlocks == (Deadlock(at=10, jobs=2, held_gpus=4.0),)
    assert stuck.started.tolist() == [True, False, False]
    broken = simulate(jobs, cluster, urgent_first.with_values({"gang.timeout_s": 30}))
    assert broken.deadlocks == stuck.deadlocks
    assert broken.start.tolist() == [0, 36, 31]
    gangs = simulate(jobs, cluster, replace(urgent_first, gang=True))
    assert gangs.deadlocks == ()
    assert gangs.start.tolist() == [0, 15, 10]


def deadlocks_of_the_reference(jobs, cluster, policy):
    return tuple(
        Deadlock(at, count, milli / 1000)
        for at, count, milli in reference(jobs, cluster, policy).deadlocks
    )


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
