"""Small worlds for the parts' driver, and its replay beside the slow one."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler_advisor.engine import Backfill, Cluster, Jobs, Outage, OutageKind, Placement, Policy
from scheduler_advisor.engine.parts import fluid_run
from scheduler_advisor.engine.parts.reference_fluid import SecondBySecond
from scheduler_advisor.engine.shapes import fitted


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
