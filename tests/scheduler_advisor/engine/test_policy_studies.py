"""What preemption, guards and quotas win and what they cost, on workloads made for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scheduler_advisor.engine import (
    Backfill,
    Cluster,
    Jobs,
    Order,
    Outage,
    Policy,
    Preemption,
    preset,
    simulate,
)
from scheduler_advisor.engine.live.settings import EvictionPart, Stop
from scheduler_advisor.replay_summary import summarised

pytestmark = pytest.mark.prove

HOUR = 3600
URGENT = Policy(order=Order.PRIORITY, backfill=Backfill.EASY)
STOPPING = replace(URGENT, preemption=Preemption.PRIORITY)


def urgent_case(count, seed=3):
    """Long training jobs that fill 64 GPUs, and now and then a short urgent one."""
    random = np.random.default_rng(seed)
    urgent = random.random(count) < 0.15
    run = np.where(
        urgent, random.integers(300, 1200, count), random.integers(2 * HOUR, 12 * HOUR, count)
    )
    gpus = np.where(urgent, random.choice([4, 8], count), random.choice([4, 8, 16], count))
    span = float((run * gpus).sum()) / 64 / 0.95
    return Jobs.build(
        submit=np.sort(random.uniform(0, span, count)).astype(np.int64),
        run=run,
        gpus=gpus,
        priority=urgent.astype(np.int64),
        preemptible=1 - urgent.astype(np.int64),
        checkpoint_every=np.full(count, HOUR),
        restore_cost=np.full(count, 60),
    )


def response(outcome):
    """Mean wait of urgent jobs, and GPU-hours that others lost or spent on being stopped."""
    jobs = outcome.jobs
    urgent = jobs.priority > 0
    wait = (outcome.first_start - jobs.submit)[urgent]
    wasted = ((outcome.lost_s + outcome.overhead_s) * jobs.gpus).sum() / HOUR
    return float(wait.mean()), float(wasted)


def test_urgent_jobs_win_response_and_the_others_lose_throughput(proof_size, record_proof):
    jobs = urgent_case(proof_size(6000))
    cluster = Cluster.uniform(8, 8)
    waited, nothing = response(simulate(jobs, cluster, URGENT))
    soon, wasted = response(simulate(jobs, cluster, STOPPING))
    assert nothing == 0
    assert soon < waited / 5
    assert wasted > 0
    served = float((jobs.run * jobs.gpus).sum()) / HOUR
    record_proof(
        "urgent_jobs",
        jobs=len(jobs),
        urgent_wait_without_s=waited,
        urgent_wait_with_s=soon,
        gpu_hours_lost=wasted,
        lost_share_ratio=wasted / served,
    )


def test_preemption_breaks_even_at_a_size_of_checkpoint(proof_size, record_proof):
    """Worth it while the GPU-hours that urgent jobs need not wait exceed those that are spent."""
    jobs = urgent_case(proof_size(3000))
    cluster = Cluster.uniform(8, 8)
    size = jobs.gpus[jobs.priority > 0].mean()
    urgent = int((jobs.priority > 0).sum())
    waited, _ = response(simulate(jobs, cluster, URGENT))
    nets = {}
    for gib in (1, 100, 1_000, 4_000, 16_000, 64_000):
        part = EvictionPart(mode=Stop.CHECKPOINT, gib_per_gpu=gib, storage_gib_s=20)
        wait, wasted = response(simulate(jobs, cluster, replace(STOPPING, eviction=part)))
        nets[gib] = (waited - wait) * size * urgent / HOUR - wasted
    sizes = sorted(nets)
    assert nets[sizes[0]] > 0 > nets[sizes[-1]]
    last = max(gib for gib in sizes if nets[gib] > 0)
    first = min(gib for gib in sizes if nets[gib] <= 0)
    assert last < first, "one break-even, not several"
    record_proof(
        "preemption_break_even",
        gib_per_gpu_between=[last, first],
        storage_gib_s=20,
        net_gpu_hours={str(gib): round(net, 1) for gib, net in nets.items()},
    )


def starving(guards):
    """One long job without checkpoints, and an urgent one every half hour for two days."""
    many = 96
    jobs = Jobs.build(
        submit=[0, *(600 + 1800 * at for at in range(many))],
        run=[6 * HOUR, *([900] * many)],
        gpus=[8] * (many + 1),
        priority=[0, *([1] * many)],
        preemptible=[1, *([0] * many)],
    )
    return simulate(jobs, Cluster.uniform(1, 8), replace(STOPPING, eviction=guards))


def test_without_guards_a_job_starves_and_with_them_none_does(record_proof):
    bare = starving(EvictionPart(mode=Stop.SCRATCH))
    counted = starving(EvictionPart(mode=Stop.SCRATCH, max_per_job=2))
    timed = starving(EvictionPart(mode=Stop.SCRATCH, min_run_s=7 * HOUR))
    assert bare.preemptions[0] > 50  # it never gets further than half an hour
    assert bare.end[0] > 48 * HOUR
    assert counted.preemptions.max() == 2
    assert counted.end[0] < 10 * HOUR
    assert timed.preemptions.max() == 0
    assert timed.end[0] == 6 * HOUR
    assert summarised(bare)["requeue_wait_s"]["max"] > summarised(counted)["requeue_wait_s"]["max"]
    record_proof(
        "starvation",
        without_guards=int(bare.preemptions[0]),
        ended_after_h=round(float(bare.end[0]) / HOUR, 1),
        with_two_at_most_ended_after_h=round(float(counted.end[0]) / HOUR, 1),
    )


def test_guards_by_the_hour_bound_what_is_stopped_in_all_and_of_one_team():
    count = 40
    jobs = Jobs.build(
        submit=[0] * 8 + [60 * at for at in range(1, count + 1)],
        run=[10 * HOUR] * 8 + [30] * count,
        gpus=[1] * (8 + count),
        team=["a"] * 4 + ["b"] * 4 + ["u"] * count,
        priority=[0] * 8 + [1] * count,
        preemptible=[1] * 8 + [0] * count,
    )
    cluster = Cluster.uniform(1, 8)
    bare = simulate(jobs, cluster, replace(STOPPING, eviction=EvictionPart(grace_s=1)))
    few = simulate(jobs, cluster, replace(STOPPING, eviction=EvictionPart(max_per_hour=3)))
    team = simulate(
        jobs, cluster, replace(STOPPING, eviction=EvictionPart(max_team_gpus_per_hour=2))
    )

    def in_first_hour(outcome):
        return int(((outcome.room_asked_at >= 0) & (outcome.room_asked_at < HOUR)).sum())

    assert in_first_hour(bare) > 10
    assert in_first_hour(few) == 3
    assert in_first_hour(team) == 4  # two GPUs of each of two teams


def test_the_young_daly_interval_comes_out_of_a_sweep(proof_size, record_proof):
    """Failures every M seconds on average, C seconds a checkpoint: least is wasted near
    sqrt(2 C M)."""
    mean_between, write = 20_000, 100
    days = proof_size(4000)
    random = np.random.default_rng(11)
    at = np.cumsum(np.maximum(2, random.exponential(mean_between, days * 4))).astype(np.int64)
    outages = tuple(Outage("n00000", int(when), int(when) + 1) for when in at)
    cluster = replace(Cluster.uniform(1, 8), outages=outages)
    work = int(at[-1] * 0.6)
    wasted = {}
    for every in (250, 500, 1000, 1500, 2000, 2500, 3000, 4000, 8000, 16000):
        jobs = Jobs.build(
            submit=[0], run=[work], gpus=[8], checkpoint_every=[every], checkpoint_cost=[write]
        )
        outcome = simulate(jobs, cluster, Policy())
        assert outcome.started.all()
        wasted[every] = int(outcome.lost_s[0] + outcome.overhead_s[0]) / work
    best = min(wasted, key=lambda every: wasted[every])
    expected = (2 * write * mean_between) ** 0.5
    assert expected / 2 <= best <= expected * 2
    record_proof(
        "young_daly",
        formula_s=round(expected),
        best_of_sweep_s=best,
        wasted_ratio={str(every): round(share, 4) for every, share in wasted.items()},
    )


def borrower(policy):
    """Team b has borrowed the whole cluster for long jobs; owner a comes back after an hour."""
    jobs = Jobs.build(
        submit=[0] * 8 + [HOUR] * 4,
        run=[8 * HOUR] * 8 + [HOUR] * 4,
        gpus=[8] * 12,
        team=["b"] * 8 + ["a"] * 4,
        checkpoint_every=[1500] * 12,
    )
    queues = {"quota.queues.a.guarantee": 32, "quota.queues.b.guarantee": 32}
    return simulate(jobs, Cluster.uniform(8, 8), policy.with_values(queues))


def test_an_owner_who_returns_gets_its_gpus_in_seconds_and_the_borrower_loses_work(record_proof):
    patient = borrower(Policy(order=Order.FAIR_SHARE, backfill=Backfill.GREEDY))
    yarn, kueue = borrower(preset("yarn-capacity")), borrower(preset("kueue"))
    assert patient.first_start[8:].min() == 8 * HOUR  # waits for the borrower's own end
    assert set((yarn.first_start[8:] - HOUR).tolist()) == {15}
    assert set((kueue.first_start[8:] - HOUR).tolist()) == {30}
    assert yarn.preemptions.tolist() == [0] * 4 + [1] * 4 + [0] * 4
    assert yarn.lost_s[4:8].tolist() == [HOUR + 15 - 3000] * 4
    back = summarised(yarn)["made_room"]["by_reclaim"]
    assert (back["jobs"], back["wait_s"]["max"]) == (4, 15)
    record_proof(
        "quota_returns",
        returned_after_s={"none": 7 * HOUR, "yarn-capacity": 15, "kueue": 30},
        gpu_hours_lost={
            name: float((one.lost_s * one.jobs.gpus).sum()) / HOUR
            for name, one in (("yarn-capacity", yarn), ("kueue", kueue))
        },
    )
