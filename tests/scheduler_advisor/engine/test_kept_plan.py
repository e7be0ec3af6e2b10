"""Conservative backfill on nodes: a plan kept from pass to pass decides what one made anew at each
pass does, and what the slow reference does."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler_advisor.engine import (
    Backfill,
    Cluster,
    Jobs,
    Order,
    Placement,
    Policy,
    simulate,
)
from scheduler_advisor.engine.drive import FREE, TOTALS
from scheduler_advisor.engine.drive_kept import suits_kept
from scheduler_advisor.engine.prepare import prepare
from scheduler_advisor.engine.reference import reference
from scheduler_advisor.engine.shapes import fitted
from scheduler_advisor.engine.simulate import plan_anew

pytestmark = pytest.mark.prove

PLACEMENTS = (Placement.WORST_FIT, Placement.BEST_FIT, Placement.FIRST_FIT, Placement.CONSOLIDATE)
ORDERS = (Order.FIFO, Order.PRIORITY, Order.SJF_LIMIT, Order.LARGEST_FIRST)
RARE = (942, 1278, 2014, 2784, 2972)
"""Seeds in which somebody who overtakes others makes them prefer other nodes, which is seen when
the next job comes: of 3,000 the only ones that tell."""


def world(seed):
    """Few nodes, some short of CPU, and queues of gangs, small jobs and jobs with a smaller last
    task; limits that are exact, loose or very loose; one queue, or several."""
    random = np.random.default_rng(seed)
    nodes, count = int(random.integers(2, 9)), int(random.integers(20, 90))
    alike = seed % 3 == 0
    cluster = Cluster.build(
        gpus=[4] * nodes if alike else random.integers(2, 9, nodes).tolist(),
        cpu_milli=[100_000] * nodes if alike else (1000 * random.integers(2, 12, nodes)).tolist(),
        gpu_model=random.choice(["a", "b"], nodes).tolist(),
    )
    run = random.integers(0 if seed % 7 == 0 else 1, 60, count)
    columns = {
        "tasks": random.choice([1, 1, 2, 3, 4], count),
        "gpus_per_task": random.choice([1, 1, 2, 3], count),
        "gpus": np.zeros(count, int),
    }
    if seed % 5 < 2:
        columns["gpu_models"] = random.choice([["", "a", "b"], ["a", "b", "a"]][seed % 5], count)
        columns["gpu_models"] = columns["gpu_models"].tolist()
    if seed % 4 == 1:
        columns["distinct_nodes"] = random.choice([0, 0, 1], count)
    if seed % 4 == 2:
        columns |= {"gpus": random.integers(1, 14, count), "tasks": np.zeros(count, int),
                    "gpus_per_task": np.zeros(count, int)}  # fmt: skip
    jobs = Jobs.build(
        submit=np.sort(random.integers(0, int(random.integers(2, 10)) * count, count)),
        run=run,
        limit=(run * random.uniform(1, (1, 2, 5)[seed % 3], count)).astype(int),
        cpu_milli=random.choice([0, 1000, 3000], count),
        priority=random.integers(0, 3, count),
        **columns,
    )
    policy = Policy(
        order=ORDERS[seed % 4] if seed % 2 else Order.FIFO,
        backfill=Backfill.CONSERVATIVE,
        backfill_depth=(0, 0, 0, 1, 4, 9)[seed // 16 % 6],
        placement=PLACEMENTS[seed // 4 % 4],
    )
    return jobs, cluster, policy


def made_anew(jobs, cluster, policy):
    """Phase, start, end and nodes of all jobs as the driver tells them that keeps nothing."""
    jobs = fitted(jobs, int(cluster.gpus.max()))
    ready = prepare(jobs, cluster, policy)
    assert suits_kept(jobs, cluster, policy)  # or nothing would be compared
    totals = np.zeros(TOTALS, np.int64)
    totals[FREE] = cluster.total_gpus * 1000
    plan_anew(ready, totals)
    runs = ready.world.runs
    return runs.phase, runs.start, runs.end, ready.world.book.node


def equal_to_reference(told, slow, context):
    """`told(job)` is None or start, end, nodes."""
    for job, start in enumerate(slow.start):
        expected = None if start is None else (start, slow.end[job], slow.nodes[job])
        assert told(job) == expected, (job, context)


def test_a_kept_plan_decides_what_the_reference_does(proof_size):
    for seed in (*range(proof_size(400)), *RARE):
        jobs, cluster, policy = world(seed)
        fast = simulate(jobs, cluster, policy)
        equal_to_reference(
            lambda job, fast=fast: (
                (int(fast.start[job]), int(fast.end[job]), fast.nodes(job).tolist())
                if fast.started[job]
                else None
            ),
            reference(jobs, cluster, policy),
            (seed, policy),
        )


def test_a_kept_plan_decides_what_one_made_anew_does(proof_size):
    for seed in (*range(proof_size(20_000)), *RARE):
        jobs, cluster, policy = world(seed)
        fast = simulate(jobs, cluster, policy)
        phase, start, end, nodes = made_anew(jobs, cluster, policy)
        assert (fast.started == (phase == 2)).all(), seed
        assert (fast.start == start).all(), seed
        assert (fast.end == end).all(), seed
        assert (fast.place_node == nodes).all(), seed


def test_a_long_queue_is_planned_as_if_made_anew():
    """Hundreds wait for sixty nodes; every plan has gangs that wait for each other's ends."""
    random = np.random.default_rng(3)
    count = 500
    gpus = random.choice([1, 2, 4, 8, 16, 64], count, p=[0.4, 0.2, 0.12, 0.14, 0.08, 0.06])
    run = random.lognormal(5, 1.2, count).astype(int) + 1
    jobs = Jobs.build(
        submit=np.sort(random.integers(0, 900, count)), run=run,
        limit=(run * random.uniform(1.2, 4, count)).astype(int), gpus=gpus,
    )  # fmt: skip
    for placement in PLACEMENTS[:2]:
        policy = Policy(backfill=Backfill.CONSERVATIVE, placement=placement)
        fast = simulate(jobs, Cluster.uniform(30, 8), policy)
        assert fast.queue_s / fast.last_instant > 40
        phase, start, _, nodes = made_anew(jobs, Cluster.uniform(30, 8), policy)
        assert (phase == 2).all()
        assert fast.start.tolist() == start.tolist()
        assert fast.place_node.tolist() == nodes.tolist()
