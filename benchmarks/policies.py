"""Speed of the general driver: fair shares, quotas and preemption, jobs per CPU-second of one core.

    python benchmarks/policies.py [--jobs N] [--record FILE.json]

Each line is one workload under one policy, compile time apart; that all jobs have ended and that
GPU-seconds add up is asserted, so a fast wrong answer fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from scheduler_advisor.engine import (
    Backfill,
    Cluster,
    Jobs,
    Order,
    Policy,
    Preemption,
    preset,
    simulate,
)
from scheduler_advisor.engine.live.settings import EvictionPart, FairPart, MultifactorPart, Victims

sys.path.insert(0, str(Path(__file__).parent))
from simulator import workload

WEEK_S = 7 * 86_400
FIGURES: dict[str, dict[str, float]] = {}


def teams(jobs: Jobs, seed: int = 3) -> Jobs:
    """Twenty teams, one job in four of higher priority, a checkpoint every ten minutes."""
    random = np.random.default_rng(seed)
    count = len(jobs)
    return jobs.changed(
        team=[f"t{one}" for one in random.integers(0, 20, count)],
        priority=random.choice([0, 0, 0, 1], count),
        preemptible=np.ones(count, np.int64),
        checkpoint_every=np.full(count, 600),
    )


def policies() -> dict[str, Policy]:
    fair = Policy(order=Order.FAIR_SHARE, backfill=Backfill.EASY, backfill_depth=100)
    stops = Policy(
        order=Order.PRIORITY,
        backfill=Backfill.EASY,
        backfill_depth=100,
        preemption=Preemption.PRIORITY,
    )
    quotas = {f"quota.queues.t{one}.guarantee": 200 for one in range(20)}
    return {
        "fair share, what runs now": fair,
        "fair share, half-life of a week": replace(fair, fair=FairPart(half_life_s=WEEK_S)),
        "drf": replace(fair, order=Order.DRF, backfill=Backfill.GREEDY),
        "multifactor": replace(
            fair,
            order=Order.MULTIFACTOR,
            multifactor=MultifactorPart(age=1000, fairshare=1000),
            fair=FairPart(half_life_s=WEEK_S),
        ),
        "preemption, least lost work": replace(
            stops, eviction=EvictionPart(victims=Victims.LEAST_LOST)
        ),
        "preemption, 30 s of grace": replace(stops, eviction=EvictionPart(grace_s=30)),
        # With consolidation it is replayed by the plain driver, a hundred times slower.
        "kai without moves, 20 quotas": preset("kai").with_values({"defrag": "none", **quotas}),
        "yarn-capacity, 20 quotas": preset("yarn-capacity").with_values(quotas),
    }


def measure(name: str, jobs: Jobs, cluster: Cluster, policy: Policy) -> None:
    """The best of two rounds, printed."""
    best = min((simulate(jobs, cluster, policy) for _ in range(2)), key=lambda one: one.engine_s)
    assert best.started.all(), "jobs are missing"
    span = best.last_instant - best.first_instant
    parts = best.held_gpu_s + best.holding_gpu_s + best.free_gpu_s
    assert abs(parts - cluster.total_gpus * span) < 1, "GPU-seconds are missing"
    FIGURES[name] = {
        "jobs_per_s": round(len(jobs) / best.engine_s),
        "mean_wait_s": round(float(best.wait.mean())),
        "examined": best.examined,
        "stopped": int(best.preemptions.sum()),
    }
    print(
        f"{name:46s} {len(jobs) / best.engine_s:12,.0f} jobs/s"
        f"  (mean wait {best.wait.mean():8,.0f} s; examined {best.examined:11,d};"
        f" stopped {int(best.preemptions.sum()):7,d})",
        flush=True,
    )


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--jobs", type=int, default=100_000)
    asked.add_argument("--record", type=Path, help="write the figures to this file")
    options = asked.parse_args()
    count = options.jobs
    began = time.process_time()
    small = teams(workload(200, 8, 0.9))
    simulate(small, Cluster.uniform(8, 8), policies()["preemption, 30 s of grace"])
    first = time.process_time() - began
    print(f"first run: {first:.1f} CPU-s to compile or load the kernels")
    for load in (0.8, 0.9, 1.0):
        jobs = teams(workload(count, 512, load))
        for name, policy in policies().items():
            measure(f"{name}, 512x8, load {load}", jobs, Cluster.uniform(512, 8), policy)
    if options.record is not None:
        unit = "jobs per CPU-second of one core, preparation included, compilation not"
        record = {"unit": unit, "jobs": count, **FIGURES}
        options.record.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
