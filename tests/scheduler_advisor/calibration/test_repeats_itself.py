"""What our own engine replayed, stored as facts and calibrated, is repeated to the second.

Everything that the advisor says rests on this: where a replay does not repeat itself, a difference
between two replays may be one of the reading and not of the policy.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from collector.demo import CLUSTER, SINCE, UNTIL, generate, write_demo
from collector.store import Store
from scheduler_advisor.calibration.grade import Grade
from scheduler_advisor.engine.policy import Backfill, Order, Policy
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.readers.store import read_history
from scheduler_advisor.steps import calibrate, load
from scheduler_advisor.window import Window
from unstrand.trace_import import TraceQuestion, take_in

NOW = datetime(2026, 11, 2, tzinfo=UTC)
EASY = Policy(backfill=Backfill.EASY)


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "site.duckdb", clock=lambda: NOW) as opened:
        yield opened


def taken_as_facts(store):
    """As if the starts of a replay were what happened."""
    with store.work() as work:
        work.execute("UPDATE fact_window SET source = replace(source, ':simulated', '')")


def window_before(store, days, back=0):
    until = store.value("SELECT max(end_at) FROM job_run").replace(tzinfo=UTC)
    until -= timedelta(days=back)
    return Window(until - timedelta(days=days), until, "UTC")


def repeated(store, window, name):
    """The calibration, its policy searched for, and whether every start in the window came back."""
    loaded = load(store, window, name)
    past = loaded.past
    outcome = simulate(past.jobs, past.cluster, EASY)
    inside = past.real_start < past.until
    same = outcome.first_start[inside] == past.real_start[inside]
    return calibrate(loaded), same, past


def crowded(path, seed=4):
    """A month in which the queue is long when a window begins: 4 nodes of 8 GPUs at load 1.05."""
    rng = np.random.default_rng(seed)
    count = 700
    gpus = rng.choice([1, 2, 4, 8, 12, 16], count, p=[0.4, 0.2, 0.15, 0.15, 0.05, 0.05])
    run = rng.lognormal(9, 0.8, count)
    run = np.maximum(60, run * 1.05 * 32 * 30 * 86_400 / float((gpus * run).sum())).astype(int)
    submit = np.sort(rng.integers(0, 30 * 86_400, count))
    limit = (run * rng.uniform(1.1, 4, count)).astype(int)
    rows = ["job_id,submit,run,gpus,limit"]
    rows += [f"{job},{submit[job]},{run[job]},{gpus[job]},{limit[job]}" for job in range(count)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def question(file, kind, shape):
    return TraceQuestion(file=file, kind=kind, cluster="c", nodes=None, shape=shape, origin=None,
                         policy="easy")  # fmt: skip


@pytest.mark.parametrize("back", [0, 8])
def test_a_window_that_begins_with_a_queue_repeats_itself(store, tmp_path, back):
    take_in(store, question(crowded(tmp_path / "jobs.csv"), "jobs", "4x8"), NOW)
    taken_as_facts(store)
    found, same, past = repeated(store, window_before(store, 14, back), "c")
    waited = (past.jobs.submit < past.since) & (past.real_start >= past.since)
    ran = past.real_start < past.since
    assert waited.sum() > 10
    assert ran.sum() > 5
    assert same.all()
    assert found.grade is Grade.A
    assert found.policy.backfill is Backfill.EASY
    assert found.policy.order is Order.FIFO
    assert found.found.real_mean_wait_s == found.found.replay_mean_wait_s


@pytest.mark.parametrize("back", [0, 20])
def test_a_trace_replayed_under_easy_repeats_itself(shared_data, store, back):
    file = shared_data / "traces" / "swf" / "philly_103959.swf"
    take_in(store, question(file, "swf", "3x8"), NOW)
    taken_as_facts(store)
    found, same, past = repeated(store, window_before(store, 28, back), "c")
    assert ((past.jobs.submit < past.since) & (past.real_start >= past.since)).sum() > 20
    assert same.all()
    assert found.grade is Grade.A


def test_the_demo_replayed_under_easy_repeats_itself(store):
    write_demo(store, generate())
    history = read_history(store, CLUSTER, SINCE, UNTIL)
    written_back(store, history, simulate(history.read.jobs, history.cluster, EASY))
    window = Window(SINCE + (UNTIL - SINCE) / 2, UNTIL, "UTC")
    loaded = load(store, window, CLUSTER)
    past = loaded.past
    outcome = simulate(past.jobs, past.cluster, EASY)
    inside = past.judged & (past.real_start < past.until)
    assert inside.sum() > 500
    assert (outcome.first_start[inside] == past.real_start[inside]).mean() > 0.99
    assert calibrate(loaded).grade is Grade.A


def written_back(store, history, outcome):
    """The starts and nodes of ``outcome`` in place of the store's own."""
    jobs, origin = outcome.jobs, datetime.fromtimestamp(history.origin_s, UTC).replace(tzinfo=None)
    done = np.flatnonzero(outcome.started)

    def instants(seconds):
        return pa.array([origin + timedelta(seconds=int(s)) for s in seconds], pa.timestamp("us"))

    tasks = jobs.tasks + (jobs.rest_gpus > 0)
    same = {"cluster": [CLUSTER] * len(done), "source": ["test"] * len(done)}
    run_id = [f"{jobs.job_id[job]}.1" for job in done]
    runs = {
        **same, "run_id": run_id, "job_id": [str(jobs.job_id[job]) for job in done],
        "attempt": pa.array([1] * len(done), pa.int32()),
        "submit_at": instants(jobs.submit[done]), "eligible_at": instants(jobs.eligible[done]),
        "start_at": instants(outcome.start[done]), "end_at": instants(outcome.end[done]),
        "state": ["COMPLETED"] * len(done), "limit_s": jobs.limit[done],
        "priority": jobs.priority[done], "gpus": pa.array(jobs.gpus[done], pa.int32()),
        "cpus": pa.array((jobs.cpu_milli * tasks // 1000)[done], pa.int32()),
        "mem_mib": (jobs.mem_mib * tasks)[done],
        "account": [jobs.account[job] for job in done],
        "user_name": [jobs.user[job] for job in done],
        "partition": [jobs.partitions[job] for job in done],
        "qos": [jobs.qos[job] for job in done],
    }  # fmt: skip
    rows = [(place, node, task) for place, job in enumerate(done)
            for task, node in enumerate(outcome.nodes(job).tolist())]  # fmt: skip
    of = np.array([done[place] for place, *_ in rows])
    rest = np.array([task >= jobs.tasks[job] for job, (_, _, task) in zip(of, rows, strict=True)])
    milli = jobs.gpu_milli[of]
    held = {
        "cluster": [CLUSTER] * len(rows), "source": ["test"] * len(rows),
        "run_id": [run_id[place] for place, *_ in rows],
        "node": [outcome.cluster.names[node] for _, node, _ in rows],
        "share_num": pa.array(np.where(milli > 0, milli, 1), pa.int32()),
        "share_den": pa.array(np.where(milli > 0, 1000, 1), pa.int32()),
        "cpus": pa.array(jobs.cpu_milli[of] // 1000, pa.int32()), "mem_mib": jobs.mem_mib[of],
        "gpus": pa.array(np.where(milli > 0, 1, np.where(rest, jobs.rest_gpus[of],
                                                         jobs.gpus_per_task[of])), pa.int32()),
        "start_at": instants(outcome.start[of]), "end_at": instants(outcome.end[of]),
    }  # fmt: skip
    with store.work() as work, work.transaction():
        work.execute("DELETE FROM allocation")
        work.execute("DELETE FROM job_run")
        work.append("job_run", pa.table(runs))
        work.append("allocation", pa.table(held))
