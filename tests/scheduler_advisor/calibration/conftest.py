"""A past whose policy is known, and the golden folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.simulate import simulate
from scheduler_advisor.past import Past

GOLDEN = Path(__file__).with_name("golden")


@pytest.fixture
def golden():
    """``golden("name", value)``: equal to the stored JSON, or stores it where there is none."""
    import json

    def check(name, value):
        path = GOLDEN / f"{name}.json"
        text = json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            pytest.fail(f"{path} was not there and has been written: read it, then commit it")
        assert json.loads(path.read_text("utf-8")) == json.loads(text)

    return check


@pytest.fixture
def made_past():
    """``made_past(policy)``: 600 jobs over ten days as that policy would have run them."""

    def make(policy: Policy, *, nodes=4, load=0.95, seed=1) -> Past:
        rng = np.random.default_rng(seed)
        count, days = 600, 10
        gpus = rng.choice([1, 2, 4, 8], count, p=[0.5, 0.25, 0.15, 0.1])
        run = rng.lognormal(8.5, 0.7, count)
        run *= load * nodes * 8 * days * 86400 / float((gpus * run).sum())
        jobs = Jobs.build(
            submit=np.sort(rng.integers(0, days * 86400, count)), run=run.astype(int) + 60,
            limit=(run * rng.uniform(1.2, 3, count)).astype(int) + 60, gpus=gpus,
            tasks=np.ones(count, int), gpus_per_task=gpus, priority=rng.integers(0, 3, count),
        )  # fmt: skip
        cluster = Cluster.build([8] * nodes, cpu_milli=[64_000] * nodes)
        outcome = simulate(jobs, cluster, policy)
        return Past(jobs, cluster, outcome.first_start - jobs.submit, 0, days * 86400)

    return make
