"""Builders of workloads, and the answers of independent simulators."""

from __future__ import annotations

import csv
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from scheduler_advisor.engine import Cluster, Jobs


@dataclass(frozen=True)
class Oracle:
    jobs: Jobs
    starts: dict[str, NDArray[np.int64]]


@pytest.fixture
def oracle(shared_data):
    """Reads `oracles/NAME.csv`: the jobs, and each simulator's start times by column name."""

    def read(name: str) -> Oracle:
        path = shared_data / "oracles" / f"{name}.csv"
        if not path.exists():
            pytest.skip(f"{path} is not here")
        with path.open() as file:
            rows = list(csv.DictReader(file))
        columns = {key: np.array([int(row[key]) for row in rows]) for key in rows[0]}
        jobs = Jobs.build(
            submit=columns["submit"],
            run=columns["run"],
            gpus=columns.get("procs", columns.get("gpus")),
            limit=columns.get("est", columns["run"]),
        )
        return Oracle(jobs, {key: value for key, value in columns.items() if "start" in key})

    return read


@pytest.fixture
def fleet():
    """`pool:N` or `NxG`."""

    def make(spec: str) -> Cluster:
        if spec.startswith("pool:"):
            return Cluster.pool(int(spec[5:]))
        nodes, gpus = spec.split("x")
        return Cluster.uniform(int(nodes), int(gpus))

    return make
