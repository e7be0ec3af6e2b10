"""Compiling the ledger's loops before somebody waits for them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from analytics.ledger.build import build
from analytics.window import EPOCH, Window
from collector.model import Allocation, FactWindow, Job, JobRun, Node
from collector.store import Store

_HOUR = timedelta(hours=1)
_FROM: dict[str, Any] = {"cluster": "warm", "source": "warm"}


def warm() -> None:
    """Builds one hour of a site of one node, with a GPU stranded by CPU, so that every loop is
    compiled and in the cache."""
    since = EPOCH + timedelta(days=1)
    with Store.open(":memory:", clock=lambda: since) as store:
        with store.work() as work:
            work.append_facts(
                [
                    Node(node="n", gpu_model="m", gpus=2, cpus=4, valid_from=EPOCH, **_FROM),
                    FactWindow(kind="scheduler", since=EPOCH, until=since + _HOUR, **_FROM),
                    JobRun(run_id="r", job_id="r", submit_at=since, start_at=since,
                           state="RUNNING", gpus=1, **_FROM),
                    Allocation(run_id="r", node="n", gpus=1, cpus=4, share_num=1, share_den=1,
                               start_at=since, **_FROM),
                    Job(job_id="w", submit_at=since, req_nodes=1, req_gpus=2, **_FROM),
                    JobRun(run_id="w", job_id="w", submit_at=since, eligible_at=since,
                           state="PENDING", gpus=2, **_FROM),
                ]
            )  # fmt: skip
            sample = {"node": "n", "gpu_uuid": "g", "run_id": "r", "ts": since + _HOUR / 2,
                      "step_s": 60.0, "util_ratio": 0.5, **_FROM}  # fmt: skip
            work.append("sample", {name: [value] for name, value in sample.items()})
        build(store, "warm", Window(since, since + _HOUR))
