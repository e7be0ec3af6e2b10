"""What each scheduler that people run is known for, shown by its preset."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler_advisor.engine import Backfill, Cluster, Jobs, Policy, preset, simulate
from scheduler_advisor.engine.parts.driver import driver_of


def queues(name, **rules):
    """The preset with queues: a=(guarantee, weight) or a guarantee alone."""
    values = {}
    for queue, given in rules.items():
        guarantee, weight = given if isinstance(given, tuple) else (given, 1)
        values |= {
            f"quota.queues.{queue}.guarantee": guarantee,
            f"quota.queues.{queue}.weight": weight,
        }
    return preset(name).with_values(values)


def held_by(outcome, at):
    """GPUs of each team's running jobs at an instant; jobs of one attempt only."""
    jobs = outcome.jobs
    going = (outcome.start <= at) & (outcome.end > at) & (outcome.starts > 0)
    return {
        name: int(jobs.gpus[going & (jobs.team.codes == code)].sum())
        for code, name in enumerate(jobs.team.names)
    }


def test_slurm_backfill_reserves_whole_nodes_where_easy_would_fill_the_gap():
    jobs = Jobs.build(
        submit=[0, 0, 1, 2],
        run=[10, 10, 10, 100],
        gpus=[2, 4, 4, 1],
    )
    cluster = Cluster.uniform(2, 4)
    slurm = preset("slurm").with_values({"backfill.interval_s": 0})
    assert simulate(jobs, cluster, Policy(backfill=Backfill.EASY)).start.tolist() == [0, 0, 10, 2]
    assert simulate(jobs, cluster, slurm).start.tolist() == [0, 0, 10, 10]


def test_slurm_looks_behind_a_blocked_job_every_30_s_and_at_100_jobs():
    many = 130
    jobs = Jobs.build(
        submit=[0, 1, *([2] * many)],
        run=[600, 600, *([1] * many)],
        gpus=[3, 4, *([4] * (many - 1)), 1],
    )
    outcome = simulate(jobs, Cluster.uniform(1, 4), preset("slurm"))
    assert outcome.start[-1] >= 600  # the 131st job behind is not looked at
    near = jobs.take(np.array([0, 1, 2, len(jobs) - 1]))
    assert simulate(near, Cluster.uniform(1, 4), preset("slurm")).start[-1] == 30


def test_slurm_multifactor_puts_the_user_who_has_used_less_first_as_usage_halves_in_a_week():
    day = 86_400
    jobs = Jobs.build(
        submit=[0, day, day, day + 300],
        run=[day, day, 300, 300],
        gpus=[4, 4, 4, 4],
        account=["lab"] * 4,
        user=["heavy", "other", "heavy", "light"],
    )
    outcome = simulate(jobs, Cluster.uniform(1, 4), preset("slurm"))
    assert outcome.start[3] < outcome.start[2]
    assert outcome.start[2] == outcome.end[3]


def test_volcano_starts_a_gang_with_all_its_min_available_tasks_or_none():
    jobs = Jobs.build(
        submit=[0, 0], run=[100, 100], gpus=[6, 6], tasks=[6, 6], gpus_per_task=[1, 1],
        team=["a", "b"],
    )  # fmt: skip
    whole = simulate(jobs, Cluster.uniform(2, 4), preset("volcano"))
    assert whole.start.tolist() == [0, 100]
    assert whole.held_gpu_s == 1200
    apart = simulate(jobs, Cluster.uniform(2, 4), Policy(gang=False))
    assert apart.held_gpu_s > 1200


def test_volcano_serves_the_queue_with_the_smallest_dominant_share():
    jobs = Jobs.build(
        submit=[0, 0, 0, 1, 1, 1],
        run=[100, 100, 10, 10, 10, 10],
        gpus=[2, 1, 1, 1, 1, 4],
        cpu_milli=[1000, 7000, 0, 0, 0, 0],
        team=["gpu", "cpu", "gpu", "cpu", "gpu", "gpu"],
    )
    cluster = Cluster.build([4], cpu_milli=[8000])
    outcome = simulate(jobs, cluster, preset("volcano"))
    # cpu holds 7/8 of the CPUs, gpu 3/4 of the GPUs: gpu is served before cpu.
    assert outcome.start[4] < outcome.start[3]


def test_yarn_capacity_gives_a_guarantee_back_after_its_wait_before_kill():
    jobs = Jobs.build(
        submit=[0, 10, 100], run=[1000, 1000, 50], gpus=[4, 4, 4], team=["b", "b", "a"]
    )
    outcome = simulate(jobs, Cluster.uniform(2, 4), queues("yarn-capacity", a=4, b=4))
    assert outcome.start[2] == 115  # asked at 100, killed 15 s later
    assert outcome.preemptions.tolist() == [0, 1, 0]  # the youngest; the guarantee stays
    assert outcome.start[1] == 165
    assert outcome.room_by.tolist() == [0, 0, 2]


def test_kueue_lends_within_the_cohort_and_reclaims_the_nominal_quota_once():
    jobs = Jobs.build(
        submit=[0, 0, 60, 61], run=[500, 500, 200, 10], gpus=[4, 4, 4, 4],
        team=["b", "b", "a", "b"], checkpoint_every=[60] * 4,
    )  # fmt: skip
    outcome = simulate(jobs, Cluster.uniform(2, 4), queues("kueue", a=4, b=4))
    assert outcome.first_start[:2].tolist() == [0, 0]  # b borrows all that a leaves
    assert outcome.start[2] == 90  # 30 s for the pods to end
    assert outcome.preemptions.tolist() == [0, 1, 0, 0]  # no ping-pong: b cannot take it back
    assert outcome.lost_s[1] == 30  # since its checkpoint at 60


def test_kueue_borrows_up_to_its_borrowing_limit():
    policy = queues("kueue", a=4, b=4).with_values({"quota.queues.b.maximum": 6})
    jobs = Jobs.build(submit=[0, 0, 0, 0], run=[10] * 4, gpus=[2] * 4, team=["b"] * 4)
    assert simulate(jobs, Cluster.uniform(2, 4), policy).start.tolist() == [0, 0, 0, 10]


def test_kai_shares_in_two_steps_quota_first_then_the_rest_by_weight():
    teams = ["a", "b", "c"] * 8
    jobs = Jobs.build(submit=[0] * 24, run=[1000] * 24, gpus=[1] * 24, team=teams)
    policy = queues("kai", a=2, b=2, c=(0, 2))
    outcome = simulate(jobs, Cluster.uniform(1, 8), policy)
    assert held_by(outcome, 1) == {"a": 3, "b": 3, "c": 2}


def test_kai_reclaims_down_to_the_fair_share_and_protects_what_is_not_preemptible():
    teams = ["a"] * 8 + ["b"] * 8
    jobs = Jobs.build(
        submit=[0] * 8 + [100] * 8, run=[1000] * 16, gpus=[1] * 16, team=teams,
        preemptible=[1] * 16,
    )  # fmt: skip
    outcome = simulate(jobs, Cluster.uniform(1, 8), queues("kai", a=4, b=4))
    assert outcome.preemptions.sum() == 4
    assert (outcome.room_by[8:] == 2).sum() == 4
    fixed = jobs.changed(preemptible=np.zeros(16, np.int64))
    kept = simulate(fixed, Cluster.uniform(1, 8), queues("kai", a=4, b=4))
    assert kept.preemptions.sum() == 0
    assert kept.first_start[8:].min() == 1000


def test_kai_consolidates_running_pods_so_that_a_larger_one_fits():
    """Two nodes come to be half free each. A job of a whole node waits for nobody: one of the
    others is evicted and starts again beside the other at that instant."""
    jobs = Jobs.build(
        submit=[0, 0, 0, 0, 50], run=[1000, 10, 1000, 10, 100], gpus=[2, 2, 2, 2, 4],
        preemptible=[1, 1, 1, 1, 0], checkpoint_every=[30] * 5, restore_cost=[7] * 5,
    )  # fmt: skip
    cluster = Cluster.uniform(2, 4)
    outcome = simulate(jobs, cluster, preset("kai"))
    assert outcome.first_start.tolist() == [0, 0, 0, 0, 50]
    assert outcome.preemptions.sum() == 0  # nobody gives way: all of them run on
    assert outcome.migrations.tolist() == [0, 0, 1, 0, 0]
    assert outcome.lost_s.tolist() == [0, 0, 20, 0, 0]  # since its checkpoint at 30
    assert outcome.end[2] == 1000 + 20 + 7
    apart = simulate(jobs, cluster, preset("kai").with_values({"defrag": "none"}))
    assert apart.first_start[4] == 1000
    fixed = jobs.changed(preemptible=np.zeros(5, np.int64))
    assert simulate(fixed, cluster, preset("kai")).first_start[4] == 1000


def test_a_job_of_four_gpus_runs_though_the_four_free_ones_lie_apart():
    """Three nodes of 8 with 20 GPUs in use, 7, 7 and 6 of them."""
    jobs = Jobs.build(
        submit=[0, 0, 0, 0, 0, 0, 100], run=[900] * 6 + [50], gpus=[4, 3, 4, 3, 4, 2, 4],
        tasks=[1] * 7, gpus_per_task=[4, 3, 4, 3, 4, 2, 4], preemptible=[1] * 6 + [0],
        checkpoint_every=[50] * 7,
    )  # fmt: skip
    policy = preset("kai").with_values({"placement": "worst-fit"})
    cluster = Cluster.uniform(3, 8)
    apart = simulate(jobs, cluster, policy.with_values({"defrag": "none"}))
    assert apart.first_start[6] == 900
    together = simulate(jobs, cluster, policy)
    assert together.first_start[6] == 100
    assert together.preemptions.sum() == 0
    assert together.migrations.sum() > 0


def test_kai_moves_pods_before_it_reclaims_and_reclaims_where_moves_do_not_help():
    jobs = Jobs.build(
        submit=[0, 0, 0, 0, 50, 60], run=[1000, 10, 1000, 10, 100, 100], gpus=[2, 2, 2, 2, 4, 4],
        preemptible=[1] * 6, team=["a", "a", "a", "a", "b", "b"],
    )  # fmt: skip
    outcome = simulate(jobs, Cluster.uniform(2, 4), queues("kai", a=0, b=8))
    assert outcome.first_start[4] == 50
    assert outcome.first_start[5] == 60
    assert outcome.migrations.sum() == 1
    assert outcome.room_by.tolist() == [0, 0, 0, 0, 0, 2]
    assert outcome.preemptions[:4].sum() == 2


def test_singularity_takes_gpus_from_elastic_jobs_before_it_stops_any():
    jobs = Jobs.build(
        submit=[0, 100], run=[1000, 200], gpus=[8, 4], tasks=[8, 4], gpus_per_task=[1, 1],
        priority=[0, 1], min_tasks=[4, 0], max_tasks=[8, 0],
    )  # fmt: skip
    policy = preset("singularity").with_values(
        {"elastic.resize_s": 0, "elastic.every_s": 0, "elastic.efficiency_milli": 1000}
    )
    outcome = simulate(jobs, Cluster.uniform(1, 8), policy)
    assert outcome.start.tolist() == [0, 100]
    assert outcome.preemptions.tolist() == [0, 0]
    assert outcome.resizes.tolist() == [2, 0]  # down to 4 for the other, up again after it
    assert outcome.end.tolist() == [1100, 300]  # 8,000 task-seconds: 100 x 8, 200 x 4, 800 x 8


def test_singularity_checkpoints_an_elastic_job_that_cannot_give_enough():
    jobs = Jobs.build(
        submit=[0, 100], run=[1000, 50], gpus=[8, 8], tasks=[8, 8], gpus_per_task=[1, 1],
        priority=[0, 1], min_tasks=[4, 0], max_tasks=[8, 0],
    )  # fmt: skip
    outcome = simulate(jobs, Cluster.uniform(1, 8), preset("singularity"))
    write = -(-8 * 40 // 100)  # 8 GPUs of 40 GiB over 100 GiB/s
    assert outcome.preemptions.tolist() == [1, 0]
    assert outcome.start.tolist() == [100 + write + 50, 100 + write]
    assert outcome.lost_s.tolist() == [0, 0]
    assert outcome.overhead_s.tolist() == [2 * write, 0]


@pytest.mark.parametrize(
    ("name", "columns", "driver"),
    [
        ("kai", {}, "compiled"),
        ("kai", {"preemptible": [1, 0]}, "plain"),
        ("singularity", {}, "compiled"),
        ("singularity", {"min_tasks": [1, 0]}, "plain"),
    ],
)
def test_a_part_that_touches_no_job_leaves_the_compiled_driver(name, columns, driver):
    jobs = Jobs.build(
        submit=[0, 0], run=[10, 10], gpus=[2, 2], tasks=[2, 2], gpus_per_task=[1, 1], **columns
    )
    chosen = driver_of(jobs, preset(name))
    assert chosen.name == driver
    assert bool(chosen.because) == bool(chosen.lines()) == (driver == "plain")


def test_singularity_stops_any_job_for_a_higher_tier_and_loses_only_the_checkpoint():
    jobs = Jobs.build(submit=[0, 100], run=[1000, 50], gpus=[8, 8], priority=[0, 1])
    outcome = simulate(jobs, Cluster.uniform(1, 8), preset("singularity"))
    write = -(-8 * 40 // 100)  # 8 GPUs of 40 GiB over 100 GiB/s
    assert outcome.start.tolist() == [100 + write + 50, 100 + write]
    assert outcome.lost_s.tolist() == [0, 0]
    assert outcome.overhead_s.tolist() == [2 * write, 0]  # written once, read once
    assert outcome.end[0] == 100 + write + 50 + write + 900


def test_checkpoints_written_at_once_share_the_storage():
    jobs = Jobs.build(
        submit=[0, 0, 100], run=[1000, 1000, 50], gpus=[4, 4, 8], tasks=[1, 1, 2],
        gpus_per_task=[4, 4, 4], priority=[0, 0, 1],
    )  # fmt: skip
    slow = preset("singularity").with_values({"preemption.storage_gib_s": 10})
    outcome = simulate(jobs, Cluster.uniform(2, 4), slow)
    assert outcome.start[2] == 100 + 2 * 160 // 10  # 2 x 160 GiB through 10 GiB/s


@pytest.mark.parametrize(
    "name", ["slurm", "volcano", "yarn-capacity", "kueue", "kai", "singularity"]
)
def test_every_preset_replays_and_its_gpu_seconds_add_up(name):
    random = np.random.default_rng(7)
    count = 120
    jobs = Jobs.build(
        submit=np.sort(random.integers(0, 8_000, count)),
        run=random.integers(1, 2_000, count),
        gpus=random.choice([1, 2, 4, 8, 16], count),
        team=random.choice(["a", "b", "c"], count),
        account=random.choice(["x", "y"], count),
        user=random.choice(["u", "v", "w"], count),
        priority=random.integers(0, 3, count),
        preemptible=random.integers(0, 2, count),
        checkpoint_every=np.full(count, 300),
        checkpoint_cost=np.full(count, 5),
        restore_cost=np.full(count, 20),
    )
    policy = queues(name, a=8, b=8, c=8) if name != "slurm" else preset(name)
    outcome = simulate(jobs, Cluster.uniform(4, 8), policy)
    assert outcome.started.all()
    span = outcome.last_instant - outcome.first_instant
    kept = outcome.held_gpu_s + outcome.holding_gpu_s
    assert kept + outcome.free_gpu_s == 32 * span
    seconds = jobs.run + outcome.lost_s + outcome.overhead_s
    assert outcome.held_gpu_s == float((seconds * jobs.gpus).sum())
