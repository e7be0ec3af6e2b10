"""What a store shows of checkpoints and stops, and what other intervals would cost, by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.checkpoint_intervals import CheckpointClass, declare_interval
from collector.model import Allocation, Event, Job, JobRun, Node, NodeState
from scheduler_advisor.checkpoints import Writing, in_engine, optimum_s
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.past import past_of
from scheduler_advisor.readers.store import read_history

T0 = datetime(2026, 10, 5, tzinfo=UTC)
SINCE, UNTIL = T0, T0 + timedelta(days=7)
SAME = {"cluster": "c", "source": "test"}
HOUR = 3600


def at(seconds):
    return T0 + timedelta(seconds=seconds)


def attempts(job_id, *runs, account="red", name="train"):
    """``runs``: (start, end, state, ends of checkpoints), each checkpoint written in 60 s."""
    facts = [Job(job_id=job_id, submit_at=at(0), account=account, name=name, **SAME)]
    for number, (start, end, state, saved) in enumerate(runs, 1):
        run = f"{job_id}.{number}"
        facts += [
            JobRun(run_id=run, job_id=job_id, attempt=number, submit_at=at(0), start_at=at(start),
                   end_at=at(end), gpus=8, state=state, account=account, **SAME),
            Allocation(run_id=run, node="n1", gpus=8, start_at=at(start), end_at=at(end), **SAME),
        ]  # fmt: skip
        for mark in saved:
            facts += [
                Event(ts=at(mark - 60), kind="checkpoint_begin", job_id=job_id, run_id=run, **SAME),
                Event(ts=at(mark), kind="checkpoint_end", job_id=job_id, run_id=run, **SAME),
            ]
    return facts


# Stopped after an hour and a half, 29 minutes after a checkpoint; then 51 minutes, one to read.
STOPPED = (0, 5400, "PREEMPTED", [3660])
ENDED = (9000, 12_060, "COMPLETED", [])


@pytest.fixture
def known(store):
    """``known(*facts)`` -> the history that is read of a store that holds them."""

    def read(*facts, before=None, **more):
        with store.work() as work:
            node = Node(node="n1", gpu_model="A100", gpus=8, valid_from=T0 - timedelta(9), **SAME)
            work.append_facts([node, *facts])
            if before is not None:
                before(work)
        return read_history(store, "c", SINCE, UNTIL, **more)

    return read


def declared(seconds):
    def put(work):
        of = CheckpointClass(effective_from=T0 - timedelta(days=1), cluster="c", account="red")
        declare_interval(work, of, seconds, at=T0, actor="test")

    return put


def test_a_job_that_went_on_counts_with_all_its_runs_and_what_it_lost(known):
    read = known(*attempts("1", STOPPED, ENDED), before=declared(3660)).read
    found, jobs = read.checkpoints, read.jobs
    assert (found.every[0], found.cost[0], found.evidence[0]) == (3600, 60, "declared")
    # Reading is as long as writing where nothing shows it: 60 s of the second run.
    assert (found.restore[0], bool(found.wrote[0]), bool(found.has_read[0])) == (60, True, False)
    assert found.stops == ((5400,),)
    assert found.held[0] == 5400 + 3060
    assert found.work[0] == 3600 + 3000
    assert (jobs.checkpoint_every[0], jobs.checkpoint_cost[0]) == (3600, 60)
    past = past_of(read, Cluster.uniform(1, 8), since=0, until=7 * 86_400)
    outcome = simulate(past.jobs, past.cluster, Policy())
    assert outcome.end[0] - outcome.first_start[0] == 5400 + 3060
    assert past.checkpoints.again[0] + outcome.overhead_s[0] == 5400 + 3060 - found.work[0]
    assert any("went on from a checkpoint" in remark for remark in read.remarks)


def test_marks_come_before_what_was_declared_and_that_before_jobs_alike(known):
    marks = [1800 * n for n in range(1, 9)]
    own = attempts("1", (0, 16_000, "COMPLETED", marks))
    alike = attempts("2", (20_000, 36_000, "PREEMPTED", []), (40_000, 50_000, "COMPLETED", []))
    other = attempts("3", STOPPED, ENDED, account="blue", name="other")
    read = known(*own, *alike, *other).read
    by_id = dict(zip(read.checkpoints.job_id, read.checkpoints.evidence, strict=True))
    assert by_id == {"1": "mark", "2": "learnt", "3": ""}  # one mark of its own is no interval
    again = known(before=declared(7200)).read.checkpoints
    assert dict(zip(again.job_id, again.evidence, strict=True))["2"] == "declared"
    assert dict(zip(again.job_id, (again.every + again.cost).tolist(), strict=True)) == {
        "1": 1800, "2": 7200, "3": 0,
    }  # fmt: skip


def test_no_sign_that_a_job_resumes_means_no_checkpoint(known):
    once = attempts("1", (0, 5400, "COMPLETED", []))
    failed = attempts("2", (6000, 7000, "FAILED", []))
    read = known(*once, *failed, before=declared(3600)).read
    assert read.checkpoints is None
    assert not read.jobs.checkpoint_every.any()


def test_a_stop_that_the_replay_makes_by_itself_is_not_made_twice(known):
    facts = attempts("1", STOPPED, ENDED)
    failed = NodeState(node="n1", since=at(5400), until=at(8000), state="failed", **SAME)
    read = known(*facts, failed, before=declared(3660)).read
    found = read.checkpoints
    assert found.stops == ((),)
    assert found.held[0] == 3660 + 3060 - 60  # what was kept, and what came after reading it
    outcome = simulate(read.jobs, Cluster.uniform(1, 8), Policy())
    assert outcome.end[0] == 3660 + 3000


def test_the_time_to_go_on_is_seen_where_the_first_checkpoint_came_late(known):
    late = (9000, 20_000, "COMPLETED", [9000 + 3660 + 200, 9000 + 2 * 3660 + 200])
    first = (0, 15_000, "PREEMPTED", [3660, 7320, 10_980, 14_640])
    moved = tuple(tuple(t + 9000 for t in each) if isinstance(each, list) else each
                  for each in late)  # fmt: skip
    runs = (first, (late[0] + 9000, late[1] + 9000, late[2], list(moved[3])))
    found = known(*attempts("1", *runs)).read.checkpoints
    assert (found.every[0], found.restore[0], bool(found.has_read[0])) == (3600, 200, True)


def written(how, dear=1.0, known_=None):
    facts = known_(*attempts("1", STOPPED, ENDED), before=declared(3660)).read
    found = facts.checkpoints
    jobs, _ = found.rewritten(facts.jobs, how, dear)
    writes = (jobs.run[0] - 1) // jobs.checkpoint_every[0]
    return int(jobs.run[0] + writes * jobs.checkpoint_cost[0])


@pytest.mark.parametrize(
    ("how", "held"),
    [
        # In 5,400 s: two of 1,860, so 3,600 s kept; then reading, 3,000 s and one checkpoint.
        (Writing.HALF, 5400 + 60 + 3000 + 60),
        # Nothing is kept: all 6,600 s again, and no checkpoint is due before the end.
        (Writing.DOUBLE, 5400 + 6600),
        # One checkpoint in the run, one on the way out: 5,280 s kept.
        (Writing.ON_STOP, 5400 + 60 + 1320),
        (Writing.AS_IT_IS, 5400 + 3060),
    ],
)  # fmt: skip
def test_another_interval_by_hand(known, how, held):
    assert written(how, known_=known) == held


def test_dearer_checkpoints_take_longer_for_the_same_work(known):
    # 120 s to write and to read: 3,600 kept in 5,400 s; then 120 s, and 3,000 s to the end.
    assert written(Writing.AS_IT_IS, 2.0, known_=known) == 5400 + 120 + 3000


def test_the_optimum_is_that_of_young_and_daly():
    assert optimum_s(100, 20_000) == pytest.approx((2 * 100 * 20_000) ** 0.5 - 100)


@given(
    held=st.integers(1, 10**6), every=st.integers(1200, 10**5), cost=st.integers(1, 1000)
)  # fmt: skip
def test_the_engine_holds_a_job_as_long_as_it_was_held(held, every, cost):
    run, apart = in_engine(np.array([held]), np.array([every]), np.array([cost]))
    jobs = Jobs.build(submit=[0], run=run, gpus=[1], checkpoint_every=apart, checkpoint_cost=[cost])
    writes = (jobs.run - 1) // jobs.checkpoint_every
    assert int((jobs.run + writes * jobs.checkpoint_cost)[0]) == held
