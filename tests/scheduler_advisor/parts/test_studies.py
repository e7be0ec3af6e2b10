"""What each part wins and what it costs, on workloads that say where it pays."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler_advisor.engine import Cluster, Jobs, Policy
from scheduler_advisor.engine.blast import blast_radius
from scheduler_advisor.engine.parts.fluid_run import simulate_fluid
from scheduler_advisor.engine.parts.services import day_night, replicas_of, short_minutes
from scheduler_advisor.engine.shapes import fitted

pytestmark = pytest.mark.prove

DAY_S = 86_400


def mixed(count, nodes, load, move_s, seed=1):
    """Many small jobs that can be moved, some of a whole node or two, Poisson-like arrivals."""
    draw = np.random.default_rng(seed)
    gpus = draw.choice([1, 2, 3, 4, 8, 16], count, p=[0.35, 0.2, 0.1, 0.15, 0.14, 0.06])
    run = np.maximum(300, draw.lognormal(9.3, 1.0, count)).astype(np.int64)
    span = int((gpus * run).sum() / (nodes * 8 * load))
    one = np.ones(count, np.int64)
    jobs = Jobs.build(
        submit=np.sort(draw.integers(0, span, count)),
        run=run,
        gpus=gpus,
        preemptible=one,
        checkpoint_cost=one * (move_s // 2),
        restore_cost=one * (move_s // 2),
    )
    return fitted(jobs, 8), span / DAY_S


def told(outcome, days):
    jobs, done = outcome.jobs, outcome.started
    large = done & (jobs.gpus >= 8)
    return {
        "migrations_per_day": round(float(outcome.migrations.sum()) / days, 1),
        "mean_completion_s": round(float((outcome.end - jobs.submit)[done].mean())),
        "mean_wait_large_s": round(float((outcome.first_start - jobs.submit)[large].mean())),
        "paused_gpu_h": round(outcome.paused_gpu_s / 3600, 1),
    }


def test_moving_jobs_together_pays_up_to_an_optimum_of_migrations_per_day(record_proof):
    """16 nodes of 8 GPUs at load 0.9, jobs in order; a move costs half an hour."""
    count = 600
    jobs, days = mixed(count, 16, 0.9, 1800)
    cluster = Cluster.uniform(16, 8)
    rows = [told(simulate_fluid(jobs, cluster, Policy().with_values({"defrag": "none"})), days)]
    for every, moves in ((86_400, 2), (21_600, 4), (3600, 2), (3600, 8), (600, 8), (60, 32)):
        policy = Policy().with_values(
            {
                "defrag": "threshold",
                "defrag.threshold": 0.05,
                "defrag.every_s": every,
                "defrag.moves": moves,
            }
        )
        outcome = simulate_fluid(jobs, cluster, policy)
        rows.append(told(outcome, days) | {"every_s": every, "moves": moves})
    record_proof("defragmentation", jobs=count, move_cost_s=1800, rows=rows)
    completion = [row["mean_completion_s"] for row in rows]
    often = [row["migrations_per_day"] for row in rows]
    best = int(np.argmin(completion))
    assert often[-1] > often[best] > 0
    assert completion[best] < completion[0]  # moving pays
    assert completion[best] < completion[-1]  # and can be overdone
    assert rows[-1]["paused_gpu_h"] > rows[best]["paused_gpu_h"] > 0


def test_elastic_jobs_wait_less_and_fill_what_stands_idle(proof_size, record_proof):
    """The same jobs with their sizes fixed, and free between half and twice of them."""
    count = proof_size(4000)
    jobs, days = mixed(count, 16, 0.8, 600, seed=4)
    small = jobs.gpus <= 4
    tasks = np.where(small, jobs.gpus, jobs.tasks)
    each = np.where(small, 1, jobs.gpus_per_task)
    jobs = jobs.changed(
        tasks=tasks,
        gpus_per_task=each,
        min_tasks=np.where(small, np.maximum(jobs.gpus // 2, 1), 0),
        max_tasks=np.where(small, 2 * jobs.gpus, 0),
    )
    cluster = Cluster.uniform(16, 8)
    rows = {}
    for name, keys in (
        ("fixed", {}),
        ("elastic", {"elastic": "resize"}),
        ("elastic, poor scaling", {"elastic": "resize", "elastic.efficiency_milli": 600}),
        ("elastic, a resize costs half an hour", {"elastic": "resize", "elastic.resize_s": 1800}),
    ):
        outcome = simulate_fluid(jobs, cluster, Policy().with_values(keys))
        rows[name] = told(outcome, days) | {"resizes": int(outcome.resizes.sum())}
    record_proof("elastic", jobs=count, rows=rows)
    completion = {name: row["mean_completion_s"] for name, row in rows.items()}
    assert completion["elastic"] < completion["fixed"]
    assert completion["elastic"] < completion["elastic, poor scaling"]
    assert completion["elastic"] < completion["elastic, a resize costs half an hour"]


def test_a_service_by_day_and_night_is_short_where_batch_work_holds_the_gpus(record_proof):
    """Up to 24 replicas at 14 h, 6 at night, beside batch jobs that fill 32 GPUs: as they come,
    ahead of the batch queue, and beside batch jobs that give way."""
    stays = replicas_of(day_night(6, 24, 14, 1800, 2 * DAY_S), 1800)
    batch, _ = mixed(240, 4, 1.2, 600, seed=2)
    batch_gpus = np.minimum(batch.gpus, 4)
    count, served = len(batch), len(stays)
    jobs = Jobs.build(
        submit=[*batch.submit.tolist(), *[stay.since for stay in stays]],
        run=[*batch.run.tolist(), *[stay.until - stay.since for stay in stays]],
        gpus=[*batch_gpus.tolist(), *[1] * served],
        tasks=[*batch_gpus.tolist(), *[1] * served],
        gpus_per_task=[1] * (count + served),
        service=[*[0] * count, *[1] * served],
        priority=[*[0] * count, *[1] * served],
        min_tasks=[*np.maximum(batch_gpus // 4, 1).tolist(), *[0] * served],
        max_tasks=[*batch_gpus.tolist(), *[0] * served],
    )
    rows = {}
    for name, keys in (
        ("in order", {}),
        ("services first", {"order": "priority"}),
        (
            "services first, batch gives way",
            {"order": "priority", "elastic": "resize", "elastic.every_s": 0},
        ),
    ):
        outcome = simulate_fluid(jobs, Cluster.uniform(4, 8), Policy().with_values(keys))
        rows[name] = round(outcome.short_replica_min)
        service = np.flatnonzero(outcome.jobs.service)
        spans = [(int(outcome.jobs.submit[j]), int(outcome.jobs.submit[j] + outcome.jobs.run[j]))
                 for j in service]  # fmt: skip
        starts = [int(outcome.first_start[j]) if outcome.starts[j] else None for j in service]
        assert outcome.short_replica_min == pytest.approx(short_minutes(spans, starts))
    record_proof("services", short_replica_minutes=rows)
    assert rows["in order"] > 4 * rows["services first, batch gives way"]
    # Jobs that start smaller fill the GPUs with jobs that have nothing left to give.
    assert rows["services first, batch gives way"] > rows["services first"]


def test_packed_jobs_lose_more_to_one_node_than_spread_ones():
    """Eight jobs of one GPU: packed they all die with one node."""
    jobs = fitted(Jobs.build(submit=[0] * 8, run=[100] * 8, gpus=[1] * 8), 8)
    cluster = Cluster.build(gpus=[8] * 8, leaf=[f"l{node // 4}" for node in range(8)])
    radius = {}
    for placement in ("best-fit", "worst-fit"):
        policy = Policy().with_values({"placement": placement, "defrag": "hours"})
        policy = policy.with_values({"defrag.hours": "3"})
        radius[placement] = blast_radius(simulate_fluid(jobs, cluster, policy), 50)
    assert radius["best-fit"].fullest_node_jobs == 8
    assert radius["worst-fit"].fullest_node_jobs == 1
    assert radius["best-fit"].mean_node_jobs == radius["worst-fit"].mean_node_jobs == 1
    assert radius["worst-fit"].fullest_leaf_jobs == 4
