"""Compiling the kernels before somebody waits for them."""

from __future__ import annotations

from collections.abc import Callable

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.ledger import sample_ledger
from scheduler_advisor.engine.policy import Backfill, Policy
from scheduler_advisor.engine.simulate import simulate


def warm(say: Callable[[str], None]) -> None:
    """Runs every driver once, so that its compiled code is in the cache; `say` hears of each."""
    jobs = Jobs.build(submit=[0, 0, 1], run=[2, 1, 1], gpus=[1, 2, 1])
    cluster = Cluster.uniform(1, 2)
    for name, policy in (
        ("in order, greedy and EASY", Policy(backfill=Backfill.EASY)),
        ("conservative", Policy(backfill=Backfill.CONSERVATIVE)),
        ("gang off", Policy(gang=False)),
    ):
        say(f"simulator: compiling {name} (once; kept in the cache)")
        outcome = simulate(jobs, cluster, policy)
    sample_ledger(outcome, 2)
