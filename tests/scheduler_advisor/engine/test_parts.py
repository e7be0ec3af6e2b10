"""Policies as text, hashes, invariants, purity, and the kernels as plain Python."""

from __future__ import annotations

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
    Placement,
    Policy,
    PolicyError,
    from_toml,
    preset,
    simulate,
    to_toml,
)
from scheduler_advisor.engine.ledger import sample_ledger


@given(
    st.builds(
        Policy,
        order=st.sampled_from(list(Order)),
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
        ("order", "multifactor", "not there yet"),
        ("quota.kind", "x", "not there yet"),
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


def test_the_ledger_of_a_replay_adds_up_to_the_cluster_at_every_instant():
    outcome = simulate(work(7), Cluster.uniform(6, 8), preset("fifo"))
    samples = sample_ledger(outcome, 300)
    assert (samples.milli.sum(axis=1) == 48_000).all()
    assert (samples.milli >= 0).all()
    seconds = samples.gpu_seconds()
    assert seconds["gang_wait"] + seconds["stranded_shape"] > 0
    assert seconds["held"] == pytest.approx(outcome.held_gpu_s, rel=0.05)


def test_importing_the_core_loads_neither_database_nor_screens():
    code = (
        "import sys, scheduler_advisor.engine\n"
        "bad = {'duckdb', 'pandas', 'streamlit', 'plotly', 'collector', 'analytics'}\n"
        "sys.exit(', '.join(sorted(bad & set(sys.modules))))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_kernels_are_plain_python_underneath():
    code = (
        "import numpy as np\n"
        "from scheduler_advisor.engine import Backfill, Cluster, Jobs, Policy, simulate\n"
        "run = np.arange(60) * 37 % 90 + 1\n"
        "jobs = Jobs.build(submit=np.arange(60), run=run, limit=2 * run,"
        " gpus=np.arange(60) * 7 % 16 + 1)\n"
        "for kind in Backfill:\n"
        "    outcome = simulate(jobs, Cluster.uniform(3, 8), Policy(backfill=kind))\n"
        "    print(outcome.start.tolist())\n"
        "off = Policy(gang=False, backfill=Backfill.GREEDY)\n"
        "print(simulate(jobs, Cluster.uniform(3, 8), off).start.tolist())\n"
    )
    answers = [
        subprocess.run(
            [sys.executable, "-W", "error::RuntimeWarning", "-c", code],
            env=os.environ | {"NUMBA_DISABLE_JIT": off},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for off in ("0", "1")
    ]
    assert answers[0] == answers[1]
