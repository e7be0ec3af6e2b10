"""Compiling the kernels before somebody waits for them."""

from __future__ import annotations

from collections.abc import Callable

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.ledger import sample_ledger
from scheduler_advisor.engine.policy import Backfill, Order, Policy
from scheduler_advisor.engine.simulate import simulate

CONSERVATIVE = Policy(backfill=Backfill.CONSERVATIVE)
ANEW = Policy(backfill=Backfill.CONSERVATIVE, backfill_max_limit_s=9)


# CPU-seconds of each on an empty cache, measured on one core of a virtual machine.
STEPS = (
    ("in order, greedy and EASY", 2, Policy(backfill=Backfill.EASY), 32),
    ("conservative on a pool", 1, CONSERVATIVE, 5),
    ("conservative on nodes, its plan kept", 2, CONSERVATIVE, 10),
    ("conservative on nodes, its plan made anew", 2, ANEW, 8),
    ("gang off", 2, Policy(gang=False), 10),
    ("orders, quotas and preemption by what runs", 2, Policy(order=Order.FAIR_SHARE), 60),
)
LEDGER_S = 5


def warm(tell: Callable[[float, float, str], None]) -> None:
    """Runs every driver once, so that its compiled code is in the cache.

    ``tell(done, then, what)``: what comes now, the share of the whole before it and after it.
    About two minutes of CPU on an empty cache, half a second otherwise.
    """
    jobs = Jobs.build(submit=[0, 0, 1], run=[2, 1, 1], gpus=[1, 2, 1])
    whole, done = sum(cost for *_, cost in STEPS) + LEDGER_S, 0
    for name, nodes, policy, cost in STEPS:
        tell(done / whole, (done + cost) / whole, name)
        outcome = simulate(jobs, Cluster.uniform(nodes, 2), policy)
        done += cost
    tell(done / whole, 1.0, "the ledger of a replay")
    sample_ledger(outcome, 2)
