"""Four weeks of 10,000 GPUs and 100,000 jobs: calibration and the default search in minutes."""

from __future__ import annotations

import time

import numpy as np
import pytest

from scheduler_advisor.calibration.calibrate import calibrate
from scheduler_advisor.calibration.grade import Grade
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.goals import Goals
from scheduler_advisor.past import Past
from scheduler_advisor.search.search import search
from scheduler_advisor.workers import Processes

DAYS = 28


def big_past(count, nodes):
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
    )  # fmt: skip
    cluster = Cluster.build([8] * nodes, cpu_milli=[64_000] * nodes)
    policy = Policy().with_values({"backfill": "easy", "placement": "worst-fit"})
    outcome = simulate(jobs, cluster, policy)
    return Past(jobs, cluster, outcome.first_start - jobs.submit, 0, DAYS * 86_400)


@pytest.mark.prove
def test_a_month_of_ten_thousand_gpus_is_searched_in_minutes(proof_size, record_proof):
    past = big_past(proof_size(100_000), proof_size(1250))
    began = time.monotonic()
    calls = []
    with Processes(2) as workers:
        found = calibrate(past, workers=workers)
        tried = search(past, found.policy, Goals(), workers=workers,
                       progress=lambda *call: calls.append(call))  # fmt: skip
    record_proof(
        "advice_search", jobs=len(past.jobs), gpus=past.cluster.total_gpus,
        candidates=len(tried.tried), wall_s=round(time.monotonic() - began, 1),
    )  # fmt: skip
    assert found.grade is Grade.A
    assert {what for what, _, _ in calls} >= {"changes", "pairs"}
    names = {change.name for each in tried.best for change in each.changes}
    assert not names or names & {"pack", "consolidate", "fgd", "order_priority"}
