"""A planted site in a store, so that the whole way from facts to advice is walked."""

from __future__ import annotations

import importlib.util
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from collector.model import Allocation, FactWindow, JobRun, Node

_spec = importlib.util.spec_from_file_location(
    "planted_sites", Path(__file__).parents[1] / "search" / "conftest.py"
)
planted_sites = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = planted_sites  # dataclasses look their module up
_spec.loader.exec_module(planted_sites)
T0 = datetime(2026, 9, 7, tzinfo=UTC)
SAME = {"cluster": "c", "source": "test"}


class Written:
    """Jobs of a planted site as facts of a store."""

    sites = planted_sites.SITES
    arrivals = staticmethod(planted_sites.arrivals)
    play = staticmethod(planted_sites.play)
    with_limits = staticmethod(planted_sites.Planted.with_limits)
    t0 = T0

    def __init__(self, store) -> None:
        self._store = store
        self._number = 0
        self._nodes = False

    def jobs(self, jobs, *, day=0, days=14, account="a", user="u", **more):
        """Add the jobs, shifted by ``day``; ``more`` goes to every run."""
        facts = []
        if not self._nodes:
            facts = [
                Node(node=f"n{n}", gpus=planted_sites.GPUS, cpus=planted_sites.CPUS,
                     gpu_model="A100", valid_from=T0, **SAME)
                for n in range(planted_sites.NODES)
            ]  # fmt: skip
            self._nodes = True
        since = T0 + timedelta(days=day)
        facts.append(
            FactWindow(kind="scheduler", since=since, until=since + timedelta(days=days), **SAME)
        )
        for job in jobs:
            facts += self._run(job, since, account, user, more)
        with self._store.work() as work, work.transaction():
            work.append_facts(facts)

    def _run(self, job, since, account, user, more):
        self._number += 1
        run_id = f"{self._number}.1"
        submit, start = (since + timedelta(seconds=s) for s in (job.submit, job.start))
        end = start + timedelta(seconds=job.run)
        gpus = job.gpus * job.nodes
        yield JobRun(
            run_id=run_id, job_id=str(self._number), attempt=1, submit_at=submit, start_at=start,
            end_at=end, gpus=gpus, cpus=job.cpus * job.nodes, state="COMPLETED",
            limit_s=job.limit, account=job.team or account, user_name=user, priority=job.priority,
            **more, **SAME,
        )  # fmt: skip
        for node in job.held:
            yield Allocation(
                run_id=run_id, node=f"n{node}", gpus=job.gpus, cpus=job.cpus, share_num=1,
                share_den=1, start_at=start, end_at=end, **SAME,
            )  # fmt: skip


@pytest.fixture
def written(store):
    """``written.jobs(...)``: into the empty store."""
    return Written(store)


_labs = importlib.util.spec_from_file_location(
    "followup_labs", Path(__file__).parents[1] / "advice" / "conftest.py"
)
labs = importlib.util.module_from_spec(_labs)
sys.modules[_labs.name] = labs
_labs.loader.exec_module(labs)
labs.STEP_S = 3600  # a sample an hour: three weeks of them


@pytest.fixture
def lab(store):
    """Hand-made facts of 22 days; `tests/scheduler_advisor/advice/conftest.py` has the builder."""
    return labs.Lab(store, days=22)
