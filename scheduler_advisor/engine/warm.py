"""Compiling the kernels before somebody waits for them."""

from __future__ import annotations

from collections.abc import Callable

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.ledger import sample_ledger
from scheduler_advisor.engine.policy import Backfill, Order, Policy
from scheduler_advisor.engine.simulate import simulate

CONSERVATIVE = Policy(backfill=Backfill.CONSERVATIVE)


def warm(say: Callable[[str], None]) -> None:
    """Runs every driver once, so that its compiled code is in the cache; `say` hears of each.

    About four minutes of CPU on an empty cache, half a second otherwise.
    """
    jobs = Jobs.build(submit=[0, 0, 1], run=[2, 1, 1], gpus=[1, 2, 1])
    for name, nodes, policy in (
        ("in order, greedy and EASY", 2, Policy(backfill=Backfill.EASY)),
        ("conservative on a pool", 1, CONSERVATIVE),
        ("conservative on nodes", 2, CONSERVATIVE),
        ("gang off", 2, Policy(gang=False)),
        ("orders, quotas and preemption by what runs", 2, Policy(order=Order.FAIR_SHARE)),
    ):
        say(f"simulator: compiling {name} (once; kept in the cache)")
        outcome = simulate(jobs, Cluster.uniform(nodes, 2), policy)
    say("simulator: compiling the ledger of a replay (once; kept in the cache)")
    sample_ledger(outcome, 2)
