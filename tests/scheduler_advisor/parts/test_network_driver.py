"""The compiled driver and the plain one, which share no code that places or keeps time, start and
end every gang at the same second on the same nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_advisor.engine import (
    Backfill,
    Cluster,
    Jobs,
    Order,
    Outage,
    OutageKind,
    Placement,
    Policy,
    Preemption,
    simulate,
)
from scheduler_advisor.engine.parts.fluid_run import simulate_fluid
from scheduler_advisor.engine.shapes import fitted

pytestmark = pytest.mark.prove

LEVELS = ["", "", "required:leaf", "required:spine", "required:node", "required:block", "leaf"]


def drawn(seed, outages=True):
    draw = np.random.default_rng(seed)
    count, nodes = int(draw.integers(1, 25)), int(draw.integers(1, 9))
    away = [
        Outage(
            f"n{int(draw.integers(nodes)):05d}",
            int(at),
            int(at + draw.integers(1, 40)),
            OutageKind.FAIL if draw.random() < 0.5 else OutageKind.DRAIN,
        )
        for at in draw.integers(0, 80, int(draw.integers(0, 3)) if outages else 0)
    ]
    cluster = Cluster.build(
        gpus=draw.choice([4, 8, 8], nodes).tolist(),
        cpu_milli=draw.choice([8, 100], nodes).tolist(),
        leaf=[f"l{one}" for one in draw.integers(0, 4, nodes)],
        spine=[f"s{one}" for one in draw.integers(0, 2, nodes)],
        rack=[f"r{one}" for one in draw.integers(0, 2, nodes)],
        gpu_model=draw.choice(["H100", "V100"], nodes).tolist(),
        outages=tuple(away),
        island_gpus=draw.choice([0, 2, 4], nodes).tolist() if draw.random() < 0.5 else None,
    )
    run = draw.integers(1, 40, count)
    jobs = Jobs.build(
        submit=draw.integers(0, 60, count),
        run=run,
        limit=run + draw.integers(0, 10, count),
        gpus=draw.choice([1, 2, 3, 4, 8, 12, 16, 24], count),
        cpu_milli=draw.choice([0, 0, 1, 3], count),
        restore_cost=draw.choice([0, 3], count),
        priority=draw.integers(0, 3, count),
        preemptible=draw.integers(0, 2, count),
        topology=draw.choice(LEVELS, count).tolist(),
        comm_milli=draw.choice([0, 300], count),
    )
    policy = Policy(
        backfill=Backfill(str(draw.choice(["none", "greedy"]))),
        placement=Placement.TOPOLOGY,
        order=Order(str(draw.choice(["fifo", "priority", "sjf-limit"]))),
        backfill_depth=int(draw.choice([0, 0, 1, 2])),
    )
    return jobs, cluster, policy


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100_000))
def test_gangs_start_at_the_same_second_on_the_same_nodes(seed):
    jobs, cluster, policy = drawn(seed)
    policy = policy.with_values({"topology.slowdown": "true", "topology.oversubscription": "3"})
    fast = simulate(jobs, cluster, policy)
    slow = simulate_fluid(fitted(jobs, int(cluster.gpus.max())), cluster, policy)
    done = fast.started
    assert (fast.state == slow.state).all()
    assert (fast.starts == slow.starts).all()
    assert (fast.start[done] == slow.start[done]).all()
    assert (fast.end[done] == slow.end[done]).all()
    assert fast.held_gpu_s == pytest.approx(slow.held_gpu_s)
    for job in np.flatnonzero(done).tolist():
        assert fast.nodes(job).tolist() == slow.nodes(job).tolist()


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 100_000), st.booleans())
def test_with_easy_and_preemption_too_nothing_is_held_twice_and_gpu_seconds_add_up(seed, stops):
    jobs, cluster, policy = drawn(seed)
    policy = policy.with_values({"backfill": "easy", "topology.slowdown": "true"})
    if stops:
        policy = policy.with_values({"preemption": Preemption.PRIORITY, "order": "priority"})
    outcome = simulate(jobs, cluster, policy)
    span = outcome.last_instant - outcome.first_instant
    told = outcome.held_gpu_s + outcome.free_gpu_s + outcome.down_gpu_s
    assert told == pytest.approx(cluster.total_gpus * span)
    held = np.zeros((200_000, len(cluster)), np.int32)
    for job in np.flatnonzero(outcome.started).tolist():
        sizes = np.full(len(outcome.nodes(job)), outcome.jobs.gpus_per_task[job])
        if outcome.jobs.rest_gpus[job]:
            sizes[-1] = outcome.jobs.rest_gpus[job]
        for node, size in zip(outcome.nodes(job).tolist(), sizes.tolist(), strict=True):
            held[outcome.start[job] : outcome.end[job], node] += size
    assert (held <= cluster.gpus[None, :]).all()
    leaves = np.array(cluster.leaf)
    for job in np.flatnonzero(outcome.started).tolist():
        if outcome.jobs.topology[job] == "required:leaf":
            assert len(set(leaves[outcome.nodes(job)])) == 1
