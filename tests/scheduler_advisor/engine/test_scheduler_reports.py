"""What users of real schedulers reported, played here: docs/scheduler-reports.md."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from scheduler_advisor.engine import (
    Backfill,
    Cluster,
    Jobs,
    Limit,
    Order,
    Policy,
    Preemption,
    Scope,
    preset,
    simulate,
)
from scheduler_advisor.engine.live.settings import (
    EvictionPart,
    MultifactorPart,
    QueueRule,
    QuotaPart,
    Reclaim,
)

ROOT = Path(__file__).parents[3]
GREEDY = Policy(backfill=Backfill.GREEDY)
STOPPING = replace(GREEDY, order=Order.PRIORITY, preemption=Preemption.PRIORITY)


def sharing(reclaim=Reclaim.STRICT, **guarantees):
    rules = tuple(QueueRule(name, guarantee=many) for name, many in guarantees.items())
    return replace(GREEDY, quota=QuotaPart(queues=rules, reclaim=reclaim))


def test_an_evicted_queue_does_not_take_back_what_was_reclaimed():
    """Deserved 3 and 5: one exchange, then rest."""
    jobs = Jobs.build(
        submit=[0] * 8 + [100] * 5, run=[1000] * 8 + [400] * 5, gpus=[1] * 13,
        team=["a"] * 8 + ["b"] * 5, preemptible=[1] * 13,
    )  # fmt: skip
    outcome = simulate(jobs, Cluster.uniform(1, 8), sharing(a=3, b=5))
    assert outcome.preemptions[:8].sum() == 5
    assert outcome.preemptions[8:].sum() == 0
    assert outcome.first_start[8:].tolist() == [100] * 5
    assert (outcome.starts[:8] <= 2).all()
    assert sorted(outcome.start[:8].tolist()) == [0] * 3 + [500] * 5


def test_nobody_is_stopped_for_a_job_that_would_not_fit_after_all():
    """Four GPUs could be freed, two on each of two nodes; the job needs four on one."""
    jobs = Jobs.build(
        submit=[0, 0, 0, 0, 10], run=[100, 100, 100, 100, 10], gpus=[2, 2, 2, 2, 4],
        priority=[0, 2, 0, 2, 1], preemptible=[1, 0, 1, 0, 0],
    )  # fmt: skip
    placed = replace(STOPPING, order=Order.FIFO)
    outcome = simulate(jobs, Cluster.uniform(2, 4), placed)
    assert outcome.preemptions.sum() == 0
    assert outcome.start[4] == 100


def test_a_gang_is_stopped_whole_and_comes_back_whole():
    jobs = Jobs.build(
        submit=[0, 10], run=[100, 20], gpus=[4, 1], tasks=[4, 1], gpus_per_task=[1, 1],
        priority=[0, 1], preemptible=[1, 0],
    )  # fmt: skip
    outcome = simulate(jobs, Cluster.uniform(2, 2), STOPPING)
    assert outcome.start.tolist() == [30, 10]
    assert outcome.held_gpu_s == 10 * 4 + 20 + 100 * 4


def test_room_is_kept_until_the_last_victim_has_left_and_the_first_does_not_slip_back_in():
    """Two victims leave 10 s apart; the first would fit again before the second has gone."""
    jobs = Jobs.build(
        submit=[0, 0, 50], run=[55, 500, 100], gpus=[4, 4, 8], tasks=[1, 1, 2],
        gpus_per_task=[4, 4, 4], priority=[0, 0, 1], preemptible=[1, 1, 0],
    )  # fmt: skip
    more = Jobs.build(
        submit=[0, 0, 50, 51], run=[55, 500, 100, 10], gpus=[4, 4, 8, 4], tasks=[1, 1, 2, 1],
        gpus_per_task=[4, 4, 4, 4], priority=[0, 0, 1, 0], preemptible=[1, 1, 0, 1],
    )  # fmt: skip
    policy = replace(STOPPING, eviction=EvictionPart(grace_s=15))
    for case in (jobs, more):
        outcome = simulate(case, Cluster.uniform(2, 4), policy)
        assert outcome.end[0] == 55  # ended by itself within its grace
        assert outcome.start[2] == 65
        assert outcome.preemptions[1] == 1
        assert outcome.holding_gpu_s == 4 * 10  # what the first left was kept
    assert outcome.start[3] == 165


def test_nobody_is_stopped_while_free_gpus_suffice():
    jobs = Jobs.build(
        submit=[0, 10], run=[100, 100], gpus=[4, 4], team=["a", "b"], preemptible=[1, 1],
        priority=[0, 1],
    )  # fmt: skip
    for policy in (STOPPING, sharing(b=4)):
        assert simulate(jobs, Cluster.uniform(2, 4), policy).preemptions.sum() == 0


def test_a_head_that_cannot_start_blocks_its_queue_only_where_that_is_asked_for():
    jobs = Jobs.build(
        submit=[0, 1, 2, 2], run=[100, 10, 10, 10], gpus=[3, 4, 1, 1], team=["a", "a", "a", "b"]
    )
    loose = simulate(jobs, Cluster.uniform(1, 4), GREEDY)
    strict = simulate(jobs, Cluster.uniform(1, 4), replace(GREEDY, quota=QuotaPart(strict=True)))
    assert loose.start.tolist() == [0, 100, 2, 12]
    assert strict.start.tolist() == [0, 100, 110, 2]


def test_reclaim_passes_over_protected_queues_to_one_that_borrows():
    """Queue p is within its guarantee and its jobs are the youngest: it is looked at first."""
    jobs = Jobs.build(
        submit=[0, 0, 5, 10], run=[1000] * 4, gpus=[2] * 4, team=["b", "b", "p", "a"],
        preemptible=[1] * 4,
    )  # fmt: skip
    policy = sharing(a=2, b=2, p=2)
    outcome = simulate(jobs, Cluster.uniform(1, 6), policy)
    assert outcome.preemptions.tolist() == [0, 1, 0, 0]
    assert outcome.start[3] == 10


def test_what_a_queue_holds_within_its_guarantee_is_not_reclaimed_even_for_a_higher_priority():
    jobs = Jobs.build(
        submit=[0, 0, 10], run=[100, 100, 10], gpus=[2, 2, 2], team=["a", "b", "c"],
        priority=[0, 0, 9], preemptible=[1, 1, 1],
    )  # fmt: skip
    outcome = simulate(jobs, Cluster.uniform(1, 4), sharing(a=2, b=2))
    assert outcome.preemptions.sum() == 0
    assert outcome.start[2] == 100


def test_reclaim_works_between_branches_of_a_full_cluster():
    rules = (
        QueueRule("left", guarantee=4), QueueRule("right", guarantee=4),
        QueueRule("l1", parent="left"), QueueRule("r1", parent="right"),
        QueueRule("r2", parent="right"),
    )  # fmt: skip
    policy = replace(GREEDY, quota=QuotaPart(queues=rules, reclaim=Reclaim.STRICT))
    jobs = Jobs.build(
        submit=[0] * 4 + [10] * 2, run=[1000] * 6, gpus=[2] * 6,
        team=["r1", "r1", "r2", "r2", "l1", "l1"], preemptible=[1] * 6,
    )  # fmt: skip
    outcome = simulate(jobs, Cluster.uniform(1, 8), policy)
    assert outcome.first_start[4:].tolist() == [10, 10]
    assert outcome.preemptions.sum() == 2


def test_a_job_is_not_stopped_before_its_minimum_run_time():
    jobs = Jobs.build(
        submit=[0, 10], run=[1000, 10], gpus=[4, 4], priority=[0, 1], preemptible=[1, 0]
    )
    policy = replace(STOPPING, eviction=EvictionPart(min_run_s=300))
    assert simulate(jobs, Cluster.uniform(1, 4), policy).start[1] == 300


def test_guarantees_that_exceed_the_cluster_are_served_by_share():
    jobs = Jobs.build(submit=[0] * 8, run=[100] * 8, gpus=[1] * 8, team=["a", "b"] * 4)
    policy = preset("yarn-capacity").with_values(
        {"quota.queues.a.guarantee": 8, "quota.queues.b.guarantee": 8}
    )
    outcome = simulate(jobs, Cluster.uniform(1, 4), policy)
    assert (outcome.start[0::2] == 0).sum() == 2
    assert (outcome.start[1::2] == 0).sum() == 2
    assert outcome.preemptions.sum() == 0


def test_strict_reclaim_never_takes_a_queue_below_its_guarantee_and_loose_reclaim_may():
    jobs = Jobs.build(
        submit=[0, 0, 10], run=[100, 100, 10], gpus=[4, 4, 1], team=["b", "b", "a"],
        preemptible=[1, 1, 1],
    )  # fmt: skip
    strict = simulate(jobs, Cluster.uniform(2, 4), sharing(a=1, b=7))
    loose = simulate(jobs, Cluster.uniform(2, 4), sharing(Reclaim.LOOSE, a=1, b=7))
    assert (strict.start[2], strict.preemptions.sum()) == (100, 0)
    assert (loose.start[2], loose.preemptions.sum()) == (10, 1)


def test_a_queue_without_a_maximum_may_use_the_whole_cluster():
    jobs = Jobs.build(submit=[0] * 4, run=[10] * 4, gpus=[2] * 4, team=["a"] * 4)
    assert simulate(jobs, Cluster.uniform(1, 8), sharing(a=2)).start.tolist() == [0] * 4


def test_jobs_at_their_own_limit_block_nobody():
    jobs = Jobs.build(
        submit=[0, 0, 0, 1], run=[100, 100, 100, 10], gpus=[1, 1, 1, 1], user=["u", "u", "u", "w"]
    )
    cluster = replace(Cluster.uniform(1, 4), limits=(Limit(Scope.USER, max_jobs=2),))
    policy = Policy(order=Order.MULTIFACTOR)
    assert simulate(jobs, cluster, policy).start.tolist() == [0, 0, 100, 1]


def test_enough_gpus_in_all_are_not_enough_for_one_node():
    jobs = Jobs.build(
        submit=[0, 0, 1, 2], run=[100, 100, 10, 10], gpus=[4, 4, 8, 2], tasks=[1] * 4,
        gpus_per_task=[4, 4, 8, 2],
    )  # fmt: skip
    spread = simulate(
        jobs, Cluster.uniform(2, 8), preset("kueue").with_values({"placement": "worst-fit"})
    )
    assert spread.start.tolist() == [0, 0, 100, 2]  # 8 are free, 4 on each node; others go on


def test_age_lets_a_large_job_pass_at_last():
    """Small jobs keep coming; size alone would never let the large one start."""
    many = 60
    jobs = Jobs.build(
        submit=[*range(0, 10 * many, 10), 5], run=[35] * many + [100], gpus=[2] * many + [8],
        user=["u"] * (many + 1),
    )  # fmt: skip
    small = replace(
        Policy(order=Order.MULTIFACTOR),
        multifactor=MultifactorPart(size=1000, favor_small=True, max_age_s=200),
    )
    aged = replace(small, multifactor=replace(small.multifactor, age=5000))
    aged = aged.with_values({"fairshare.period_s": 10})
    small = small.with_values({"fairshare.period_s": 10, "backfill": "greedy"})
    aged = aged.with_values({"backfill": "easy"})
    large = int(np.argmax(jobs.gpus))
    assert simulate(jobs, Cluster.uniform(1, 8), small).start[large] >= 600
    assert simulate(jobs, Cluster.uniform(1, 8), aged).start[large] < 300


def test_every_report_names_a_test_that_exists_or_says_why_it_is_out_of_scope():
    table = (ROOT / "docs" / "scheduler-reports.md").read_text(encoding="utf-8")
    rows = [
        line.strip("|").split("|") for line in table.splitlines() if re.match(r"\| *\d+ ", line)
    ]
    assert [int(row[0]) for row in rows] == list(range(1, 71))
    known = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    for row in rows:
        tests = re.findall(r"`(test_\w+)`", row[3])
        reason = re.search(r"out of scope: \w+", row[3])
        assert tests or reason, f"row {row[0].strip()} names neither a test nor a reason"
        missing = [name for name in tests if name not in known]
        assert not missing, f"row {row[0].strip()}: no such test: {', '.join(missing)}"
