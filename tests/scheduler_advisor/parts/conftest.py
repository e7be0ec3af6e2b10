"""Small worlds for the parts' driver, and its replay beside the slow one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from scheduler_advisor.engine import Backfill, Cluster, Jobs, Outage, OutageKind, Placement, Policy
from scheduler_advisor.engine.parts import fluid_run
from scheduler_advisor.engine.parts.reference_fluid import SecondBySecond
from scheduler_advisor.engine.shapes import fitted

sys.path.insert(0, str(Path(__file__).with_name("telling")))
from telling_queues import Tree
from telling_world import World


@pytest.fixture
def world():
    """Jobs and a cluster drawn from a seed: some share GPUs, some are elastic, some are replicas
    of a service, some can be stopped; nodes come and go."""

    def make(seed, *, shares=False, elastic=False, services=False, outages=True):
        draw = np.random.default_rng(seed)
        count, nodes = int(draw.integers(2, 14)), int(draw.integers(1, 5))
        models = draw.choice(["H100", "NVIDIA A100-SXM4-80GB"], nodes).tolist()
        away = [
            Outage(
                f"n{int(draw.integers(nodes)):05d}",
                int(at),
                int(at + draw.integers(1, 30)),
                OutageKind.FAIL if draw.random() < 0.7 else OutageKind.DRAIN,
            )
            for at in draw.integers(0, 60, int(draw.integers(0, 3)) if outages else 0)
        ]
        cluster = Cluster.build(
            gpus=draw.choice([2, 4], nodes).tolist(),
            cpu_milli=draw.choice([6, 100], nodes).tolist(),
            gpu_model=models,
            leaf=[f"l{one}" for one in draw.integers(0, 2, nodes)],
            outages=tuple(away),
        )
        run = draw.integers(1, 30, count)
        milli = draw.choice([100, 200, 400, 600], count)
        tasks = draw.integers(1, 4, count)
        some = np.ones(count, np.int64)
        small = (draw.random(count) < 0.7) if shares else np.zeros(count, bool)
        bends = (draw.random(count) < 0.6) & ~small if elastic else np.zeros(count, bool)
        serves = (draw.random(count) < 0.3) & ~bends if services else np.zeros(count, bool)
        jobs = Jobs.build(
            submit=draw.integers(0, 40, count),
            run=run,
            limit=run + draw.integers(0, 20, count),
            gpus=np.where(small, 1, tasks),
            tasks=np.where(small, 1, tasks),
            gpus_per_task=some,
            gpu_milli=np.where(small, milli, 0),
            cpu_milli=draw.integers(0, 3, count),
            latency_sensitive=draw.integers(0, 2, count),
            preemptible=draw.integers(0, 2, count),
            checkpoint_every=draw.choice([0, 4], count),
            checkpoint_cost=draw.choice([0, 1], count),
            restore_cost=draw.choice([0, 2], count),
            min_tasks=np.where(bends, np.maximum(tasks - 2, 1), 0),
            max_tasks=np.where(bends, tasks + 2, 0),
            service=serves.astype(np.int64),
            comm_milli=draw.choice([0, 200], count),
        )
        placement = draw.choice([Placement.BEST_FIT, Placement.FIRST_FIT, Placement.TOPOLOGY])
        policy = Policy(
            backfill=Backfill(str(draw.choice(["none", "greedy"]))),
            placement=Placement(str(placement)),
        )
        return fitted(jobs, 4), cluster, policy

    return make


@pytest.fixture
def both():
    """Replays under a policy by the driver and second by second; every start and end equal."""

    def replay(jobs, cluster, policy, until=1200):
        outcome = fluid_run.simulate_fluid(jobs, cluster, policy)
        other = fluid_run.prepared_fluid(jobs, cluster, policy)
        unplaceable = fluid_run.hopeless_jobs(other)
        slow = SecondBySecond(other)
        slow.run(unplaceable, until)
        context = (policy.backfill, policy.placement, cluster.outages)
        for job in range(len(jobs)):
            assert outcome.starts[job] == len(slow.starts.get(job, [])), (job, context)
            if outcome.starts[job]:
                assert outcome.first_start[job] == slow.starts[job][0], (job, context)
                assert outcome.start[job] == slow.starts[job][-1], (job, context)
            assert bool(outcome.started[job]) == (job in slow.ends), (job, context)
            if job in slow.ends:
                assert outcome.end[job] == slow.ends[job], (job, context)
            assert outcome.migrations[job] == slow.moved.get(job, 0), (job, context)
            assert outcome.resizes[job] == slow.resized.get(job, 0), (job, context)
            assert outcome.lost_s[job] == other.progress[job].lost, (job, context)
        span = outcome.last_instant - outcome.first_instant
        told = outcome.held_gpu_s + outcome.free_gpu_s + outcome.down_gpu_s
        assert told == pytest.approx(cluster.total_gpus * span, abs=1e-6)
        return outcome

    return replay


@pytest.fixture
def told():
    """Replays by the plain driver and by the slow telling: what became of every job is equal. Jobs
    that can never run are left out of both."""

    def replay(jobs, cluster, policy):
        jobs = fitted(jobs, int(cluster.gpus.max()))
        outcome = fluid_run.simulate_fluid(jobs, cluster, policy)
        if (outcome.state == 2).any():
            kept = jobs.take(np.flatnonzero(outcome.state != 2))
            return replay(kept, cluster, policy) if len(kept) else outcome
        world = World(Tree(jobs, cluster, policy), jobs, cluster, policy)
        world.run(int(outcome.last_instant) + 40)
        for at, slow in enumerate(world.jobs):
            found = _of_driver(outcome, at)
            for key, value in _of_telling(slow).items():
                assert found[key] == value, (at, key, found[key], value, policy, cluster)
        span = outcome.last_instant - outcome.first_instant
        total = outcome.held_gpu_s + outcome.holding_gpu_s + outcome.free_gpu_s + outcome.down_gpu_s
        assert total == pytest.approx(cluster.total_gpus * span, abs=1e-6)
        return outcome

    return replay


def _of_driver(outcome, at):
    ran = outcome.starts[at] > 0
    return {
        "starts": outcome.starts[at],
        "first": outcome.first_start[at] if ran else None,
        "last": outcome.start[at] if ran else None,
        "end": outcome.end[at] if ran else None,
        "nodes": outcome.nodes(at).tolist() if ran else [],
        "done": outcome.state[at] == 0,
        "stops": outcome.preemptions[at],
        "by": 0 if outcome.room_by is None else outcome.room_by[at],
        "moves": outcome.migrations[at],
        "resizes": outcome.resizes[at],
        "lost": outcome.lost_s[at],
        "overhead": outcome.overhead_s[at],
        "left": outcome.left_s[at],
    }


def _of_telling(slow):
    return {
        "starts": len(slow.starts),
        "first": slow.starts[0] if slow.starts else None,
        "last": slow.starts[-1] if slow.starts else None,
        "end": slow.end if slow.starts else None,
        "nodes": slow.nodes,
        "done": slow.state == "over",
        "stops": slow.stops,
        "by": slow.by,
        "moves": slow.moves,
        "resizes": slow.resizes,
        "lost": slow.lost,
        "overhead": slow.overhead,
        "left": slow.todo,
    }
