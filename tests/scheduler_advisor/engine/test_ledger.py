"""The classes of free GPUs, the queue and F over time, against what the schedule itself says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scheduler_advisor.engine import (
    Backfill,
    Cluster,
    Jobs,
    Limit,
    Order,
    Outage,
    OutageKind,
    Placement,
    Policy,
    Reservation,
    Scope,
    Ties,
    simulate,
)
from scheduler_advisor.engine.ledger import CLASSES, sample_ledger
from scheduler_advisor.engine.packing import PackPolicy, pack
from scheduler_advisor.engine.reference_scored import scoring_of
from scheduler_advisor.engine.reference_world import Held, Need, Space, jobs_of
from scheduler_advisor.readers.pods import read_pack_nodes, read_pods
from scheduler_advisor.replay_detail import detailed, max_min


def busy(seed, shares=False, count=80):
    """Jobs of all shapes, more than the cluster below can take at once."""
    random = np.random.default_rng(seed)
    return Jobs.build(
        submit=np.sort(random.integers(0, 300, count)),
        run=random.integers(0, 60, count),
        gpus=random.integers(0, 12, count),
        tasks=random.integers(0, 3, count),
        gpus_per_task=random.integers(0, 3, count),
        gpu_milli=random.choice([0, 0, 300, 500] if shares else [0], count),
        exclusive=random.choice([0, 0, 0, 1], count),
        cpu_milli=random.choice([0, 1000, 2000], count),
        mem_mib=random.choice([0, 100], count),
        gpu_models=random.choice(["", "a", "b"], count),
        team=random.choice(["x", "y", "z"], count),
    )


def nodes(**rules):
    return Cluster.build(
        gpus=[4, 4, 8, 2],
        cpu_milli=[4000, 8000, 16000, 2000],
        mem_mib=[400, 800, 1600, 200],
        gpu_model=["a", "b", "a", "b"],
        **rules,
    )


def spaces_at(outcome, now):
    """The nodes at `now` as the reference keeps them, rebuilt from starts, ends and places."""
    jobs, cluster = outcome.jobs, outcome.cluster
    spaces = [
        Space([1000] * int(gpus), int(cpu), int(mem))
        for gpus, cpu, mem in zip(cluster.gpus, cluster.cpu_milli, cluster.mem_mib, strict=True)
    ]
    running = np.flatnonzero(outcome.started & (outcome.start <= now) & (now < outcome.end))
    for job in running.tolist():
        exact = max(int(jobs.gpus_per_task[job]), 1)
        for at, node in enumerate(outcome.nodes(job).tolist()):
            last = at == jobs.tasks[job]
            gpus = int(jobs.rest_gpus[job] if last else jobs.gpus_per_task[job])
            parts = gpus if last else exact
            cpu, mem = (
                -(-int(amount[job]) * parts // exact) for amount in (jobs.cpu_milli, jobs.mem_mib)
            )
            need = Need(gpus, 0, cpu, mem, exclusive=bool(jobs.exclusive[job]))
            if outcome.place_gpu is None:
                spaces[node].take(need)
                continue
            which = int(outcome.place_gpu[int(outcome.place_start[job]) + at])
            held = {one: 1000 for one in range(8) if (which >> one) & 1}
            if jobs.gpu_milli[job] and not need.exclusive:
                held = {which: int(jobs.gpu_milli[job])}
            if need.exclusive:
                cpu, mem = spaces[node].cpu, spaces[node].mem
            spaces[node].add(Held(held, cpu, mem), -1)
    return spaces


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shares", [False, True])
def test_held_gpus_the_queue_and_f_are_those_of_the_schedule(seed, shares):
    jobs = busy(seed, shares)
    policy = Policy(backfill=Backfill.EASY, placement=Placement.FGD if shares else "best-fit")
    outcome = simulate(jobs, nodes(), policy)
    samples = sample_ledger(outcome, 23)
    made = jobs_of(outcome.jobs, outcome.cluster, Policy(), [()] * len(jobs))
    scoring = scoring_of(outcome.jobs, outcome.cluster, policy, made)
    possible = outcome.state != 2
    assert (samples.milli.sum(axis=1) == 18_000).all()
    assert (samples.milli >= 0).all()
    for at, now in enumerate(samples.at.tolist()):
        spaces = spaces_at(outcome, now)
        idle = sum(sum(space.gpus) for space in spaces)
        assert samples.milli[at, CLASSES.index("held")] == 18_000 - idle
        queued = possible & (outcome.jobs.eligible <= now) & (outcome.start > now)
        assert samples.queued[at] == queued.sum()
        lost = sum(scoring.unusable(space, node) for node, space in enumerate(spaces))
        assert samples.fragmentation_milli[at] == pytest.approx(lost / scoring.total)


def test_nodes_away_reservations_and_headroom_have_classes_of_their_own():
    cluster = nodes(
        outages=(Outage("n00000", 50, 90), Outage("n00001", 100, None, OutageKind.DRAIN)),
        reservations=(Reservation("r", ("n00002",), 20, 40),),
        headroom_gpus=1,
    )
    jobs = Jobs.build(submit=[0, 200], run=[1, 1], gpus=[1, 1])
    samples = sample_ledger(simulate(jobs, cluster, Policy()), 202)
    column = {name: samples.milli[:, at] / 1000 for at, name in enumerate(CLASSES)}
    at = {now: int(np.flatnonzero(samples.at == now)[0]) for now in (10, 30, 60, 95, 150)}
    told = {
        now: {name: float(column[name][row]) for name in CLASSES if column[name][row]}
        for now, row in at.items()
    }
    assert told == {
        10: {"reserved": 1.0, "free": 17.0},
        30: {"reserved": 9.0, "free": 9.0},
        60: {"failed": 4.0, "reserved": 1.0, "free": 13.0},
        95: {"reserved": 1.0, "free": 17.0},
        150: {"drained": 4.0, "reserved": 1.0, "free": 13.0},
    }


def test_what_pending_jobs_wait_for_is_named():
    """One job each: too wide, of the wrong shape, short of CPU, behind the head, over a limit."""

    def classes(cluster=None, **columns):
        jobs = Jobs.build(
            submit=[0, 0, 1],
            run=[50, 50, 50],
            **{"user": ["u", "v", "w"], "limit": [50, 50, 50]} | columns,
        )
        samples = sample_ledger(simulate(jobs, cluster or Cluster.uniform(2, 4), Policy()), 26)
        row = samples.milli[np.flatnonzero(samples.at >= 20)[0]] / 1000
        return {name: float(row[at]) for at, name in enumerate(CLASSES) if row[at]}

    assert classes(gpus=[4, 1, 5]) == {"held": 5.0, "gang_wait": 3.0}
    apart = {"gpus": [1, 4, 4], "tasks": [1, 2, 1], "gpus_per_task": [1, 2, 4]}
    assert classes(**apart) == {"held": 5.0, "gang_wait": 3.0}
    spread = {"tasks": [2, 0, 0], "gpus_per_task": [1, 0, 0], "distinct_nodes": [1, 0, 0]}
    assert classes(gpus=[2, 0, 4], **spread) == {"held": 2.0, "stranded_shape": 4.0, "free": 2.0}
    few = replace(Cluster.uniform(2, 4), cpu_milli=np.array([4000, 4000]))
    assert classes(few, gpus=[1, 1, 4], cpu_milli=[4000, 4000, 4000]) == {
        "held": 2.0,
        "stranded_cpu": 6.0,
    }
    assert classes(gpus=[2, 8, 1]) == {"held": 2.0, "gang_wait": 6.0}
    one = replace(Cluster.uniform(2, 4), limits=(Limit(Scope.USER, max_gpus=3),))
    assert classes(one, gpus=[3, 1, 2], user=["u", "v", "u"]) == {
        "held": 4.0,
        "policy_blocked": 2.0,
        "free": 2.0,
    }


def test_the_queue_is_sampled_in_the_order_of_the_policy():
    """Two GPUs are free on each of two nodes; a job of 4 came before one of 8."""
    jobs = Jobs.build(
        submit=[0, 1, 2],
        run=[50, 9, 9],
        gpus=[4, 4, 8],
        tasks=[2, 1, 2],
        gpus_per_task=[2, 4, 4],
        distinct_nodes=[1, 0, 0],
    )
    for order, name in ((Order.FIFO, "stranded_shape"), (Order.LARGEST_FIRST, "gang_wait")):
        samples = sample_ledger(simulate(jobs, Cluster.uniform(2, 4), Policy(order=order)), 68)
        row = samples.milli[np.flatnonzero(samples.at == 30)[0]]
        assert row[CLASSES.index(name)] == 4000


def test_details_of_a_replay_add_up():
    outcome = simulate(busy(3), nodes(), Policy(backfill=Backfill.EASY))
    told = detailed(outcome, 400)
    done = int(outcome.started.sum())
    assert sum(row["jobs"] for row in told["by_team"]) == done
    assert sum(row["jobs"] for row in told["by_size_class"]) == done
    hours = 18 * (outcome.last_instant - int(outcome.jobs.submit.min())) / 3600
    assert sum(told["gpu_hours_by_class"].values()) == pytest.approx(hours)
    assert 0 < told["shares"]["jain_index"] <= 1
    assert 0 <= told["shares"]["deviation_ratio"] < 1
    assert max(told["series"]["gpus_by_class"]["held"]) <= 18


@pytest.fixture
def openb(shared_data):
    """The pods as jobs that arrive one a second and never end, and the nodes with GPUs."""
    folder = shared_data / "traces" / "openb"
    pods = read_pods(folder / "openb_pod_list_default.csv")
    nodes = read_pack_nodes(folder / "openb_node_list_gpu_node.csv")
    count = len(pods)
    whole = (pods.gpus > 0) & (pods.gpu_milli == 1000)
    jobs = Jobs.build(
        submit=np.zeros(count, int),
        eligible=2 + np.arange(count),  # at 0 and 1 nothing runs
        run=np.full(count, 10**6),
        gpus=np.where(whole, pods.gpus, 0),
        tasks=np.ones(count, int),
        gpus_per_task=np.where(whole, pods.gpus, 0),
        gpu_milli=np.where(whole, 0, np.where(pods.gpus > 0, pods.gpu_milli, 0)),
        cpu_milli=pods.cpu_milli,
        mem_mib=pods.mem_mib,
        gpu_models=list(pods.gpu_models),
    )
    cluster = Cluster.build(
        gpus=nodes.gpus,
        names=nodes.name,
        cpu_milli=nodes.cpu_milli,
        mem_mib=nodes.mem_mib,
        gpu_model=nodes.gpu_model,
    )
    return pods, nodes, jobs, cluster


def test_f_of_the_empty_openb_cluster_is_the_published_one(openb):
    """866,232.55 milli-GPU, against the typical tasks of the pods replayed as jobs."""
    _, _, jobs, cluster = openb
    samples = sample_ledger(simulate(jobs, cluster, Policy(backfill=Backfill.GREEDY)), 2)
    assert samples.at[0] == 0
    assert samples.milli[0].sum() == 6_212_000
    assert round(float(samples.fragmentation_milli[0]), 2) == 866_232.55


@pytest.mark.parametrize("ties", ["name", "most-packed"])
@pytest.mark.parametrize("score", ["fgd", "dot-product"])
def test_in_time_pods_that_never_end_go_where_place_only_packing_puts_them(openb, score, ties):
    pods, nodes, jobs, cluster = openb
    packed = pack(pods, nodes, PackPolicy.named(score, ties))
    policy = Policy(placement=Placement(score), placement_ties=Ties(ties), backfill=Backfill.GREEDY)
    outcome = simulate(jobs, cluster, policy)
    first = np.where(outcome.start < 10**6, outcome.start, 0)  # before the first end
    there = (outcome.starts > 0) & (first == jobs.eligible)
    ours = [cluster.names[node] for node in outcome.place_node[outcome.place_start].tolist()]
    theirs = [packed.nodes.name[node] if node >= 0 else None for node in packed.node.tolist()]
    assert [name if here else None for name, here in zip(ours, there, strict=True)] == theirs
    assert sum(name is not None for name in theirs) > 7_000


def test_fair_parts_are_equal_and_nobody_gets_more_than_wanted():
    assert max_min(np.array([1.0, 9.0, 9.0]), 9.0).tolist() == [1.0, 4.0, 4.0]
    assert max_min(np.array([1.0, 2.0]), 9.0).tolist() == [1.0, 2.0]
