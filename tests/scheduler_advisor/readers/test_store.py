"""The store's own history as jobs and a cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from collector.model import Allocation, Job, JobRun, Node, NodeState
from scheduler_advisor.engine.limits import OutageKind
from scheduler_advisor.engine.policy_text import preset
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.readers.errors import ReaderError
from scheduler_advisor.readers.store import read_history

T0 = datetime(2026, 10, 5, tzinfo=UTC)
SINCE, UNTIL = T0, T0 + timedelta(days=7)
SAME = {"cluster": "c", "source": "test"}


def at(minutes):
    return None if minutes is None else T0 + timedelta(minutes=minutes)


def node(name, gpus=8, **more):
    return Node(
        node=name, gpu_model="A100", gpus=gpus, valid_from=T0 - timedelta(days=9), **SAME, **more
    )


def run(job_id, submit, start, end, gpus=1, attempt=1, **more):
    return JobRun(
        run_id=f"{job_id}.{attempt}", job_id=job_id, attempt=attempt, submit_at=at(submit),
        start_at=at(start), end_at=at(end), gpus=gpus, state="COMPLETED", **SAME, **more,
    )  # fmt: skip


def held(run_id, name, gpus, start, end, **more):
    return Allocation(
        run_id=run_id, node=name, gpus=gpus, start_at=at(start), end_at=at(end), **SAME, **more
    )


@pytest.fixture
def history(store):
    """``history(*facts)`` -> what is read of a store that holds them and two nodes."""

    def read(*facts, since=SINCE, until=UNTIL):
        with store.work() as work:
            work.append_facts(
                [
                    node("n1", partitions=("p",)),
                    node("n2", cpus=96, mem_mib=100, partitions=("p", "q")),
                ]
            )
            work.append_facts(facts)
        return read_history(store, "c", since, until)

    return read


def test_times_limits_names_and_the_wait_that_was(history):
    found = history(
        Job(job_id="1", submit_at=at(0), req_gpu_model="A100", topology="leaf", **SAME),
        run("1", 0, 10, 70, gpus=2, limit_s=7200, account="team", user_name="u", qos="q",
            partition="p,x", priority=5, cpus=8, mem_mib=50),
    )  # fmt: skip
    jobs = found.read.jobs
    assert (jobs.submit[0], jobs.run[0], jobs.limit[0], jobs.gpus[0]) == (0, 3600, 7200, 2)
    assert (jobs.cpu_milli[0], jobs.mem_mib[0], jobs.priority[0]) == (8000, 50, 5)
    names = {"team": "team", "user": "u", "qos": "q", "partitions": "p|x", "gpu_models": "A100"}
    assert {name: getattr(jobs, name)[0] for name in names} == names
    assert found.read.observed_wait_s.tolist() == [600]
    assert found.origin_s == int(T0.timestamp())


@pytest.mark.parametrize(
    ("parts", "shape"),
    [([8, 8], (2, 8, 0)), ([8, 4], (1, 8, 4)), ([4], (1, 4, 0)), ([5, 3, 2], (0, 0, 0))],
)
def test_the_shape_is_what_the_last_run_held_on_its_nodes(history, parts, shape):
    facts = [held("1.1", f"n{i}", gpus, 0, 60) for i, gpus in enumerate(parts)]
    jobs = history(run("1", 0, 0, 60, gpus=sum(parts)), *facts).read.jobs
    assert (jobs.tasks[0], jobs.gpus_per_task[0], jobs.rest_gpus[0]) == shape
    assert jobs.gpus[0] == sum(parts)


def test_gpus_named_one_by_one_add_up_per_node_and_shares_stay_shares(history):
    whole = [held("1.1", "n1", 1, 0, 60, gpu_uuid=f"g{i}") for i in range(3)]
    share = held("2.1", "n1", 1, 0, 60, gpu_uuid="g7", share_num=3, share_den=10)
    jobs = history(run("1", 0, 0, 60, gpus=3), run("2", 1, 1, 60), *whole, share).read.jobs
    assert jobs.gpus.tolist() == [3, 1]
    assert jobs.gpus_per_task.tolist() == [3, 1]
    assert jobs.gpu_milli.tolist() == [0, 300]


def test_a_requeued_job_is_one_job_that_waited_until_its_first_start(history):
    found = history(run("1", 0, 5, 15), run("1", 0, 60, 120, attempt=2))
    assert found.read.kept == 1
    assert found.read.jobs.run.tolist() == [3600]
    assert found.read.observed_wait_s.tolist() == [300]
    assert found.read.remarks == ("1 jobs ran more than once: the run time of the last run counts",)


def test_what_cannot_be_replayed_is_counted_and_what_still_runs_is_told(history):
    found = history(
        run("pending", 0, None, None),
        run("instant", 0, 5, 5),
        run("open", 0, 5, None, last_known_at=at(65)),
        run("before", -900, -800, -700),
        run("across", -900, -800, 60),
        run("after", 60 * 24 * 8, None, None),
    )
    assert sorted(found.read.jobs.job_id) == ["across", "open"]
    assert found.read.dropped == {
        "never ran: no run time is known": 1,
        "run time of 0 or less": 1,
    }
    assert found.read.remarks == ("1 jobs were still running: their run time so far counts",)
    # Second 0 is the first submit; what ran already begins when it really did.
    assert found.read.jobs.submit.tolist() == [100 * 60, 900 * 60]
    assert found.read.jobs.run.tolist() == [860 * 60, 3600]


def test_jobs_submitted_in_one_second_come_in_the_order_of_their_numbers(history):
    jobs = history(run("10", 0, 0, 60), run("9", 0, 0, 60), run("11", 0, 0, 60)).read.jobs
    assert list(jobs.job_id) == ["9", "10", "11"]


def test_suspended_time_is_no_run_time(history):
    assert history(run("1", 0, 0, 60, suspended_s=600)).read.jobs.run.tolist() == [3000]


def test_the_cluster_has_its_nodes_partitions_and_outages(history):
    found = history(
        run("1", 0, 0, 60),
        NodeState(node="n1", since=at(30), until=at(90), state="down", **SAME),
        NodeState(node="n2", since=at(-60), state="drained", **SAME),
        NodeState(node="n2", since=at(-90), until=at(-70), state="down", **SAME),
        node("gone", valid_to=at(5)),
    )
    cluster = found.cluster
    assert (cluster.names, cluster.total_gpus) == (("n1", "n2"), 16)
    assert cluster.cpu_milli[1] == 96_000
    assert [(part.name, part.nodes) for part in cluster.partitions] == [
        ("p", ("n1", "n2")),
        ("q", ("n2",)),
    ]
    assert [(o.node, o.down_at, o.up_at, o.kind) for o in cluster.outages] == [
        ("n1", 1800, 5400, OutageKind.FAIL),
        ("n2", 0, None, OutageKind.DRAIN),
    ]


def test_a_window_or_a_cluster_without_facts_is_refused(history, store):
    with pytest.raises(ReaderError, match="no job of cluster c ran"):
        history()
    with pytest.raises(ReaderError, match="no job of cluster other ran"):
        read_history(store, "other", SINCE, UNTIL)


def test_a_read_history_can_be_replayed(history):
    found = history(
        run("1", 0, 0, 60, gpus=16, partition="p"), run("2", 1, 90, 120, gpus=8, partition="q")
    )
    outcome = simulate(found.read.jobs, found.cluster, preset("fifo"))
    assert outcome.started.all()
    assert outcome.wait.tolist() == [0, 59 * 60]
