"""Policies as text, hashes, invariants, purity, and the kernels as plain Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys

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
    Partition,
    Placement,
    Policy,
    PolicyError,
    from_toml,
    preset,
    simulate,
    to_toml,
)
from scheduler_advisor.engine.drive import drive
from scheduler_advisor.engine.drive_holding import drive_holding
from scheduler_advisor.engine.drive_kept import drive_kept
from scheduler_advisor.engine.drive_planned import drive_planned
from scheduler_advisor.engine.ledger import sample_ledger
from scheduler_advisor.engine.policy import STATIC_ORDERS


@given(
    st.builds(
        Policy,
        order=st.sampled_from([one for one in Order if one in STATIC_ORDERS]),
        backfill=st.sampled_from(list(Backfill)),
        backfill_depth=st.integers(0, 1000),
        placement=st.sampled_from(list(Placement)),
        seed=st.integers(0, 99),
    )
)
def test_a_policy_survives_its_text_with_its_hash(policy):
    again = from_toml(to_toml(policy))
    assert again == policy
    assert again.hash == policy.hash


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("order", "best", "not one of"),
        ("quota.kind", "x", "no key quota.kind"),
        ("backfil.depth", "1", "no key backfil.depth"),
        ("backfill.depth", "many", "whole number"),
        ("gang", "maybe", "true or false"),
        ("placement", "best", "not one of"),
    ],
)
def test_what_a_policy_does_not_know_is_refused_with_a_reason(key, value, said):
    with pytest.raises(PolicyError, match=said):
        Policy().with_values({key: value})


def work(seed, loose=3.0, count=400):
    random = np.random.default_rng(seed)
    run = np.maximum(1, random.lognormal(4, 1, count)).astype(np.int64)
    return Jobs.build(
        submit=np.sort(random.integers(0, 4000, count)),
        run=run,
        gpus=random.choice([1, 2, 4, 8, 12, 16], count),
        limit=(run * random.uniform(1, loose, count)).astype(np.int64),
    )


IN_TIME = [one for one in Placement if one not in ("fgd", "dot-product", "topology")]
ALL = [Policy(backfill=one) for one in Backfill]


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.backfill)
@settings(max_examples=10)
@given(seed=st.integers(0, 1000))
def test_no_gpu_is_held_twice_and_every_gang_starts_at_once(policy, seed):
    jobs = work(seed)
    outcome = simulate(jobs, Cluster.uniform(6, 8), policy)
    assert outcome.started.all()
    assert (outcome.start >= jobs.submit).all()
    assert (outcome.end - outcome.start == jobs.run).all()
    held = np.zeros((6, 2 * len(jobs)))
    instants = np.concatenate((outcome.start, outcome.end))
    for job in range(len(jobs)):
        sizes = [outcome.jobs.gpus_per_task[job]] * int(outcome.jobs.tasks[job])
        sizes += [outcome.jobs.rest_gpus[job]] if outcome.jobs.rest_gpus[job] else []
        during = (instants >= outcome.start[job]) & (instants < outcome.end[job])
        for node, size in zip(outcome.nodes(job), sizes, strict=True):
            held[node, during] += size
    assert held.max() <= 8
    assert outcome.held_gpu_s == (jobs.gpus * jobs.run).sum()


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.backfill)
def test_scaling_all_times_scales_all_waits(policy):
    jobs = work(3)
    longer = jobs.changed(
        submit=jobs.submit * 7, run=jobs.run * 7, limit=jobs.limit * 7, eligible=jobs.submit * 7
    )
    cluster = Cluster.uniform(6, 8)
    assert (
        simulate(longer, cluster, policy).wait == 7 * simulate(jobs, cluster, policy).wait
    ).all()


def test_removing_a_job_never_makes_fifo_on_a_pool_start_another_later():
    jobs = work(5)
    before = simulate(jobs, Cluster.pool(48), preset("fifo")).start
    for gone in range(0, len(jobs), 37):
        kept = np.delete(np.arange(len(jobs)), gone)
        assert (
            simulate(jobs.take(kept), Cluster.pool(48), preset("fifo")).start <= before[kept]
        ).all()


@pytest.mark.parametrize("seed", range(6))
def test_twice_the_gpus_never_raises_the_mean_wait_of_fifo_on_a_pool(seed):
    """On a pool there is no packing: in order, without backfill, no start can come later."""
    jobs = work(seed)
    one, twice = (simulate(jobs, Cluster.pool(gpus), preset("fifo")) for gpus in (32, 64))
    assert twice.wait.mean() < one.wait.mean()
    assert (twice.start <= one.start).all()


def test_the_ledger_of_a_replay_adds_up_to_the_cluster_at_every_instant():
    outcome = simulate(work(7), Cluster.uniform(6, 8), preset("fifo"))
    samples = sample_ledger(outcome, 300)
    assert (samples.milli.sum(axis=1) == 48_000).all()
    assert (samples.milli >= 0).all()
    seconds = samples.gpu_seconds()
    assert seconds["gang_wait"] + seconds["stranded_shape"] > 0
    assert seconds["held"] == pytest.approx(outcome.held_gpu_s, rel=0.05)


@pytest.mark.parametrize("placement", [Placement.FGD, Placement.DOT_PRODUCT])
def test_a_plan_by_numbers_of_gpus_refuses_placement_by_score(placement):
    policy = Policy(backfill=Backfill.CONSERVATIVE, placement=placement)
    with pytest.raises(PolicyError, match=f"{placement} cannot score"):
        simulate(work(1), Cluster.uniform(6, 8), policy)


def test_fgd_in_time_puts_shares_where_they_harm_typical_tasks_least():
    """Half GPUs arrive on two nodes of 2; typical tasks ask for halves and for whole nodes: FGD
    fills opened GPUs, worst-fit opens a second node and the whole-node job must wait."""
    jobs = Jobs.build(
        submit=[0, 1, 2, 3],
        run=[100] * 4,
        gpus=[0, 0, 2, 0],
        tasks=[1] * 4,
        gpus_per_task=[0, 0, 2, 0],
        gpu_milli=[500, 500, 0, 500],
    )
    cluster = Cluster.uniform(2, 2)
    waits = {
        placement: simulate(jobs, cluster, Policy(placement=placement)).wait.tolist()
        for placement in (Placement.FGD, Placement.WORST_FIT)
    }
    assert waits == {Placement.FGD: [0, 0, 0, 0], Placement.WORST_FIT: [0, 0, 98, 97]}


def test_importing_the_core_loads_neither_database_nor_screens():
    code = (
        "import sys, scheduler_advisor.engine\n"
        "bad = {'duckdb', 'pandas', 'streamlit', 'plotly', 'collector', 'analytics'}\n"
        "print(*sorted(bad & set(sys.modules)))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert loaded == []


PLAIN = """
import numpy as np
from scheduler_advisor.engine import Backfill, Cluster, Jobs, Policy, simulate

run = np.arange(24) * 37 % 90 + 1
jobs = Jobs.build(submit=np.arange(24), run=run, limit=2 * run, gpus=np.arange(24) * 7 % 16 + 1)
policies = [Policy(backfill=kind) for kind in Backfill]
policies.append(Policy(gang=False, backfill=Backfill.GREEDY))
answer = [simulate(jobs, Cluster.uniform(3, 8), one).start.tolist() for one in policies]
"""


def test_the_kernels_are_plain_python_underneath():
    compiled: dict[str, list[list[int]]] = {}
    exec(PLAIN, compiled)
    plain = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", PLAIN + "print(answer)"],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(plain) == compiled["answer"]


def test_every_driver_is_compiled_once_whatever_the_cluster_looks_like():
    """Another array layout would be another signature: the same code compiled again for 30 s."""
    for models in (["a", "a"], ["a", "b"]):
        jobs = Jobs.build(submit=[0, 0], run=[1, 1], gpus=[1, 2], gpu_models=["a", "a|b"])
        cluster = Cluster.build(gpus=[2, 2], gpu_model=models)
        for policy in (*ALL, Policy(gang=False)):
            simulate(jobs, cluster, policy)
    drivers = (drive, drive_planned, drive_kept, drive_holding)
    assert [len(one.signatures) for one in drivers] == [1, 1, 1, 1]


@pytest.mark.parametrize("placement", IN_TIME)
def test_permuting_node_names_changes_nothing_but_names(placement):
    jobs = work(11, count=600)
    jobs = jobs.changed(partitions=["p", "q|r", ""] * 200)

    def named(names):
        parts = {"p": names[:3], "q": names[2:5], "r": names[1:]}
        return Cluster.build(
            gpus=[8, 8, 4, 8, 8, 16],
            names=names,
            partitions=[
                Partition(key, tuple(nodes), default=key == "r") for key, nodes in parts.items()
            ],
            outages=[Outage(names[1], 900, 1500), Outage(names[4], 2000, 2600)],
        )

    names = ["n0", "n1", "n2", "n3", "n4", "n5"]
    policy = Policy(order=Order.PRIORITY, backfill=Backfill.EASY, placement=placement, seed=3)
    one = simulate(jobs, named(names), policy)
    other = simulate(jobs, named([names[at] for at in (4, 2, 5, 0, 1, 3)]), policy)
    assert one.starts.max() > 1  # a failure hit somebody
    assert one.state.tolist() == other.state.tolist()
    assert one.start.tolist() == other.start.tolist()
    assert one.place_node.tolist() == other.place_node.tolist()


def late_heads(outcome, gpus):
    """(heads that had to wait, those that started after their first promise), from what is known
    when a job becomes head: who runs where, and until when the scheduler believes that it does.
    """
    jobs, start = outcome.jobs, outcome.start
    waited = late = 0
    for job in range(len(jobs)):
        since = max(int(start[:job].max(initial=0)), int(jobs.eligible[job]))
        if start[job] <= since:
            continue
        before = np.flatnonzero((start < since) | ((start == since) & (np.arange(len(jobs)) < job)))
        running = before[outcome.end[before] > since]
        believed = start[running] + jobs.limit[running]
        tasks, rest = int(jobs.tasks[job]), int(jobs.rest_gpus[job])
        for at in np.sort(believed):
            free = np.array(gpus)
            for other in running[believed > at]:
                sizes = [jobs.gpus_per_task[other]] * int(jobs.tasks[other])
                sizes += [jobs.rest_gpus[other]] if jobs.rest_gpus[other] else []
                np.subtract.at(free, outcome.nodes(other), sizes)
            whole = np.count_nonzero(free >= jobs.gpus_per_task[job])
            if whole >= tasks and (not rest or np.count_nonzero(free >= rest) > tasks):
                break
        waited += 1
        late += start[job] > at
    return waited, late


@pytest.mark.parametrize("seed", [0, 1])
def test_the_head_under_easy_never_starts_later_than_its_first_promise(seed):
    jobs, cluster = work(seed, count=300), Cluster.uniform(6, 8)
    waited, late = late_heads(simulate(jobs, cluster, preset("easy")), cluster.gpus)
    assert waited > 20
    assert late == 0
    _, broken = late_heads(simulate(jobs, cluster, preset("greedy")), cluster.gpus)
    assert broken > 0  # greedy backfill promises nothing
