"""Four weeks of 10,000 GPUs and 100,000 jobs from a store, through the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from analytics.ledger import build
from analytics.prices import Price, load_prices
from analytics.window import Window as LedgerWindow
from collector.model import FactWindow, Node
from collector.store import Store
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.running.runs import Runs
from scheduler_advisor.whatif.try_out import start_whatif
from scheduler_advisor.whatif.wish import Wish
from scheduler_advisor.window import Window

DAYS = 28
T0 = datetime(2026, 10, 5, tzinfo=UTC)
UNTIL = T0 + timedelta(days=DAYS)


def history(count, nodes):
    """A cluster that spreads its jobs, so that there is something to find."""
    rng = np.random.default_rng(1)
    gpus = rng.choice([1, 2, 4, 8, 16, 64], count, p=[0.5, 0.2, 0.12, 0.12, 0.04, 0.02])
    run = rng.lognormal(8.5, 1.2, count)
    run *= 0.92 * nodes * 8 * DAYS * 86_400 / float((gpus * run).sum())
    jobs = Jobs.build(
        submit=np.sort(rng.integers(0, DAYS * 86_400, count)), run=run.astype(int) + 1,
        limit=(run * rng.uniform(1.2, 4, count)).astype(int) + 1, gpus=gpus,
        tasks=np.maximum(gpus // 8, 1), gpus_per_task=np.minimum(gpus, 8),
        priority=(rng.random(count) < 0.1) * 10, cpu_milli=np.minimum(gpus, 8) * 7000,
        user=[f"u{number}" for number in rng.integers(0, 200, count)],
        team=[f"t{number}" for number in rng.integers(0, 20, count)],
    )  # fmt: skip
    names = [f"n{number:04d}" for number in range(nodes)]
    cluster = Cluster.build([8] * nodes, names=names, cpu_milli=[64_000] * nodes)
    policy = Policy().with_values({"backfill": "easy", "placement": "worst-fit"})
    return simulate(jobs, cluster, policy)


def instants(seconds, known=None):
    """Instants from seconds of the window; none where it is not known."""
    at = (int(T0.timestamp()) + np.asarray(seconds)) * 1_000_000
    mask = None if known is None else ~known
    return pa.array(at, pa.timestamp("us"), mask=mask)


def fill(store, outcome):
    """The history as facts, prices, and the ledger of the month."""
    jobs, names = outcome.jobs, outcome.cluster.names
    size = len(jobs)
    tasks = jobs.tasks
    ids = [str(job) for job in range(size)]
    runs = [f"{job}:1" for job in ids]
    users = [jobs.user[job] for job in range(size)]
    teams = [jobs.team[job] for job in range(size)]
    of_task = np.repeat(np.arange(size), tasks)
    offset = np.arange(len(of_task)) - np.repeat(np.cumsum(tasks) - tasks, tasks)
    node = outcome.place_node[outcome.place_start[of_task] + offset]
    same = {"cluster": ["c"] * size, "source": ["test"] * size}
    late, started = outcome.end >= DAYS * 86_400, outcome.start < DAYS * 86_400
    start, end = instants(outcome.start, started), instants(outcome.end, ~late)
    held = started[of_task]
    with store.work() as work:
        work.append_facts(
            [Node(cluster="c", node=name, gpu_model="H100", gpus=8, cpus=64, mem_mib=1 << 20,
                  owned=False, partitions=("batch",), valid_from=T0, source="test")
             for name in names]
            + [FactWindow(cluster="c", kind="scheduler", since=T0, until=UNTIL, source="test")]
        )  # fmt: skip
        work.append("job", same | {
            "job_id": ids, "account": teams, "user_name": users, "submit_at": instants(jobs.submit),
            "req_nodes": tasks, "req_gpus": jobs.gpus, "limit_s": jobs.limit,
        })  # fmt: skip
        work.append("job_run", same | {
            "run_id": runs, "job_id": ids, "attempt": [1] * size, "account": teams,
            "user_name": users, "partition": ["batch"] * size, "submit_at": instants(jobs.submit),
            "eligible_at": instants(jobs.submit), "start_at": start, "end_at": end,
            "state": ["PENDING" if not ok else "RUNNING" if open_ else "COMPLETED"
                      for ok, open_ in zip(started.tolist(), late.tolist(), strict=True)],
            "priority": jobs.priority, "gpus": jobs.gpus, "cpus": jobs.cpu_milli * tasks // 1000,
            "nodes": tasks, "limit_s": jobs.limit,
            "last_known_at": instants(np.full(size, DAYS * 86_400), late),
        })  # fmt: skip
        work.append("allocation", {
            "cluster": ["c"] * int(held.sum()), "source": ["test"] * int(held.sum()),
            "run_id": [runs[job] for job in of_task[held].tolist()],
            "node": [names[at] for at in node[held].tolist()],
            "gpu_model": ["H100"] * int(held.sum()), "gpus": jobs.gpus_per_task[of_task][held],
            "share_num": [1] * int(held.sum()), "share_den": [1] * int(held.sum()),
            "cpus": jobs.cpu_milli[of_task][held] // 1000,
            "start_at": start.take(pa.array(of_task[held])),
            "end_at": end.take(pa.array(of_task[held])),
        })  # fmt: skip
        price = Price(gpu_model="H100", amount=Decimal("2.50"), currency="USD", kind="contracted",
                      source="contract")  # fmt: skip
        load_prices(work, [price], at=T0, actor="test")
    build(store, "c", LedgerWindow(T0, UNTIL))


def held_mib(pid):
    """Resident memory of a process; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) // 1024


def peak_mib(process):
    """The most memory that the process and its children held together, while it lives."""
    most, children = 0, Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        try:
            pids = [process.pid, *children.read_text("ascii").split()]
        except (FileNotFoundError, ProcessLookupError):
            break
        most = max(most, sum(held_mib(pid) for pid in pids))
        time.sleep(0.2)
    return most


@pytest.fixture
def month(tmp_path, proof_size):
    """The store's path and how many jobs and GPUs it holds."""
    path = tmp_path / "month.duckdb"
    outcome = history(proof_size(100_000), proof_size(1250))
    with Store.open(path, clock=lambda: UNTIL) as store:
        fill(store, outcome)
    return path, len(outcome.jobs), outcome.cluster.total_gpus


@pytest.mark.prove
def test_a_month_of_ten_thousand_gpus_is_advised_on_from_its_store(month, record_proof):
    path, jobs, gpus = month
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "unstrand", "advise", "--db", str(path), "--window", "4w", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        most = []
        watch = threading.Thread(target=lambda: most.append(peak_mib(process)))
        watch.start()
        out, told = process.communicate()
        watch.join()
    wall = time.monotonic() - began
    assert process.returncode == 0, told
    report = json.loads(out)
    best = [rec for rec in report["recommendations"] if rec["kind"] == "policy_change"]
    assert report["fidelity"][0]["grade"] == "A"
    assert best
    assert any(name in best[0]["title"] for name in ("used nodes first", "fewest nodes", "FGD"))
    children = os.times()
    record_proof(
        "advice_from_store", jobs=jobs, gpus=gpus, wall_s=round(wall, 1),
        cpu_s=round(children.children_user + children.children_system, 1),
        peak_mib=most[0], tried=len(best[0]["replay"]["tried"]),
    )  # fmt: skip
    first, *after = tried_in(path)
    tried = {" ".join(f"{key}={value}" for key, value in keys.items()): seconds
             for keys, seconds in zip(WISHES, after, strict=True)}  # fmt: skip
    record_proof("whatif_from_store", jobs=jobs, gpus=gpus, first_s=first, next_s=tried)


WISHES = (
    {"placement": "best-fit"},
    {"order": "priority"},
    {"order": "sjf-limit"},
    {"order": "fair-share"},
    {"order": "multifactor", "multifactor.age": "1000", "multifactor.fairshare": "5000"},
    {"preemption": "priority", "order": "priority"},
    {"backfill": "greedy"},
    {"backfill": "conservative", "backfill.depth": "100"},
    {"backfill": "conservative"},
)
"""What is tried one by one; all but the first leave a queue of hundreds to thousands."""


def tried_in(path):
    """Seconds until what-ifs of one policy answer: the first with its load and calibration."""
    took = []
    with Store.open(path, clock=lambda: UNTIL) as store:
        runs = Runs(store, lambda: UNTIL, workers=2)
        try:
            for keys in ({}, *WISHES):
                began = time.monotonic()
                wish = Wish(values=tuple(keys.items()))
                run = start_whatif(runs, Window(T0, UNTIL), "c", wish)
                assert run.answered.wait(500)
                took.append(round(time.monotonic() - began, 2))  # other loads come after it
                assert run.over.wait(500)
                assert run.error is None
        finally:
            runs.close()
    return took
