"""Orders that change, quotas, EASY and preemption in the plain driver: with no part on, it starts,
stops and ends every job as the slow reference does, with which it shares the tree of queues alone.
With parts on, nothing is held twice and GPU-seconds add up."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from telling_policy import moving_of, queue_of, rules_of

from scheduler_advisor.engine import (
    Cluster,
    Jobs,
    Limit,
    Outage,
    OutageKind,
    Policy,
    Reservation,
    Scope,
)
from scheduler_advisor.engine.live.reference_run import live_reference
from scheduler_advisor.engine.parts.fluid_run import simulate_fluid
from scheduler_advisor.engine.shapes import fitted

PROVE = os.environ.get("UNSTRAND_PROVE") == "1"
SEEDS = st.integers(0, 1_000_000)
MANY = settings(max_examples=2000 if PROVE else 120, deadline=None, derandomize=not PROVE)


def cluster_of(draw, timed):
    nodes = int(draw.integers(1, 7))
    away = [
        Outage(
            f"n{int(draw.integers(nodes)):05d}",
            int(at),
            int(at + draw.integers(1, 30)),
            OutageKind.FAIL if draw.random() < 0.5 else OutageKind.DRAIN,
        )
        for at in draw.integers(0, 60, 0 if timed else int(draw.integers(0, 3)))
    ]
    limits = [Limit(Scope(str(draw.choice(list(Scope)))), max_gpus=int(draw.choice([4, 8])))]
    return Cluster.build(
        gpus=draw.choice([2, 4, 4], nodes).tolist(),
        cpu_milli=draw.choice([4, 100], nodes).tolist(),
        leaf=[f"l{one}" for one in draw.integers(0, 3, nodes)],
        spine=[f"s{one}" for one in draw.integers(0, 2, nodes)],
        outages=tuple(away),
        limits=tuple(limits if draw.random() < 0.2 else ()),
        reservations=reservations(draw, nodes),
        headroom_gpus=int(draw.choice([0, 0, 0, 1])),
    )


def reservations(draw, nodes):
    """None, or one of some nodes for a while."""
    if draw.random() < 0.7:
        return ()
    since = int(draw.integers(0, 40))
    kept = sorted(set(draw.integers(0, nodes, 2).tolist()))
    return (
        Reservation(
            "kept", tuple(f"n{one:05d}" for one in kept), since, since + int(draw.integers(5, 60))
        ),
    )


def workload(draw, shares):
    count = int(draw.integers(2, 16))
    run = draw.integers(1, 25, count)
    small = (draw.random(count) < 0.4) if shares else np.zeros(count, bool)
    gpus = np.where(small, 1, draw.choice([1, 2, 3, 4, 5, 6, 8, 12], count))
    columns = {} if not shares else {"gpu_milli": np.where(small, 400, 0)}
    return Jobs.build(
        submit=draw.integers(0, 30, count),
        run=run,
        limit=run + draw.choice([0, 0, 5, 12], count),
        gpus=gpus,
        tasks=np.where(small, 1, 0),
        cpu_milli=draw.choice([0, 0, 1, 2], count),
        distinct_nodes=draw.choice([0, 0, 0, 1], count),
        priority=draw.integers(0, 3, count),
        preemptible=draw.choice([0, 1, 1], count),
        checkpoint_every=draw.choice([0, 3], count),
        checkpoint_cost=draw.choice([0, 1], count),
        restore_cost=draw.choice([0, 2], count),
        team=draw.choice(["a", "b", "c"], count).tolist(),
        user=draw.choice(["x", "y"], count).tolist(),
        account=draw.choice(["m", "n"], count).tolist(),
        exclusive=(draw.random(count) < (0.2 if draw.random() < 0.4 else 0)).astype(np.int64),
        reservation=np.where(draw.random(count) < 0.1, "kept", "").tolist(),
        parent_of=[(count - 1, 0)] if draw.random() < 0.3 else [],
        **columns,
    )


def policy_of(draw, timed, shares):
    backfills = ["none", "greedy"] if shares else ["none", "greedy", "easy", "easy"]
    placements = ["topology", "best-fit", "first-fit", "worst-fit"]
    values = rules_of(draw, timed, placements, backfills) | moving_of(draw, timed)
    for queue in ("a", "b", "c"):
        if draw.random() < 0.6:
            values |= queue_of(draw, queue, 0)
    return Policy().with_values(values)


def same(jobs, cluster, policy):
    """Jobs that can never run are left out: their arrival is an instant for the driver alone."""
    plain = simulate_fluid(fitted(jobs, int(cluster.gpus.max())), cluster, policy)
    slow = live_reference(jobs, cluster, policy)
    hopeless = plain.state == 2
    assert hopeless.nonzero()[0].tolist() == sorted(slow.unplaceable)
    if hopeless.any():
        kept = jobs.take(np.flatnonzero(~hopeless))
        return same(kept, cluster, policy) if len(kept) else plain
    for job in range(len(jobs)):
        context = (job, policy, cluster)
        assert plain.starts[job] == slow.starts[job], context
        assert plain.preemptions[job] == slow.preemptions[job], context
        assert plain.lost_s[job] == slow.lost_s[job], context
        assert plain.overhead_s[job] == slow.overhead_s[job], context
        assert plain.left_s[job] == slow.left_s[job], context
        by = 0 if plain.room_by is None else plain.room_by[job]
        assert by == slow.by[job], context
        assert (plain.state[job] == 0) == (slow.start[job] is not None), context
        if slow.start[job] is not None:
            assert plain.first_start[job] == slow.first_start[job], context
            assert plain.start[job] == slow.start[job], context
            assert plain.end[job] == slow.end[job], context
            assert plain.nodes(job).tolist() == slow.nodes[job], context
    adds_up(plain)
    return plain


def adds_up(outcome):
    span = outcome.last_instant - outcome.first_instant
    told = outcome.held_gpu_s + outcome.holding_gpu_s + outcome.free_gpu_s + outcome.down_gpu_s
    assert told == pytest.approx(outcome.cluster.total_gpus * span, abs=1e-6)


@MANY
@given(SEEDS)
def test_what_happens_at_once_equals_the_reference(seed):
    draw = np.random.default_rng(seed)
    shares = draw.random() < 0.3
    same(workload(draw, shares), cluster_of(draw, False), policy_of(draw, False, shares))


@MANY
@given(SEEDS)
def test_preemption_that_takes_time_equals_the_reference(seed):
    draw = np.random.default_rng(seed)
    same(workload(draw, False), cluster_of(draw, True), policy_of(draw, True, False))


def elastic(draw, jobs):
    tasks = np.maximum(jobs.tasks, 1)
    bends = (draw.random(len(jobs)) < 0.6) & (jobs.rest_gpus == 0) & (jobs.gpus_per_task > 0)
    return jobs.changed(
        min_tasks=np.where(bends, np.maximum(tasks - 2, 1), 0),
        max_tasks=np.where(bends, tasks + 2, 0),
    )


@MANY
@given(SEEDS, st.booleans())
def test_consolidation_and_resizing_beside_quotas_and_preemption_keep_the_books(seed, timed):
    draw = np.random.default_rng(seed)
    cluster = cluster_of(draw, timed)
    jobs = elastic(draw, fitted(workload(draw, False), int(cluster.gpus.max())))
    policy = policy_of(draw, timed, False)
    parts = {"defrag": "pending", "defrag.moves": int(draw.integers(1, 4)), "defrag.every_s": 0}
    if cluster.headroom_gpus == 0:
        parts |= {"elastic": "resize", "elastic.resize_s": 2, "elastic.every_s": 3}
    outcome = simulate_fluid(jobs, cluster, policy.with_values(parts))
    adds_up(outcome)
    moved = outcome.migrations > 0
    assert (outcome.starts[moved] > 1).all()
    assert not moved[jobs.preemptible == 0].any() or policy.eviction.eligible == "all"
    able = outcome.state != 2
    orphans = {child for child, parent in jobs.parent_of.tolist() if not able[parent]}
    waits = {job for job in np.flatnonzero(able).tolist() if outcome.state[job] == 1} - orphans
    assert not waits or cluster.outages or policy.preemption == "priority" or policy.quota.queues
