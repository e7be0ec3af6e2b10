"""A small workload whose waits differ by policy."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.sweep.cells import read_cells

POLICIES = """
seeds = [1, 2]
[policy.fifo]
[policy.easy]
preset = "easy"
[policy.deep]
preset = "easy"
backfill.depth = 3
[policy.anywhere]
placement = "random"
"""


@pytest.fixture(scope="session")
def jobs():
    random = np.random.default_rng(3)
    run = random.integers(10, 500, 300)
    submit = np.sort(random.integers(0, 6000, 300))
    return Jobs.build(submit=submit, run=run, limit=run * 2, gpus=random.choice([1, 2, 8, 16], 300))


@pytest.fixture(scope="session")
def cluster():
    return Cluster.uniform(6, 8)


@pytest.fixture(scope="session")
def cells():
    return read_cells(POLICIES)
