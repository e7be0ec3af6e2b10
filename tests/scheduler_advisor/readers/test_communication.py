"""Communication fractions from planted repeats and planted traffic."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from collector.model import Allocation, Job, JobRun, Node
from scheduler_advisor.engine import Policy, simulate
from scheduler_advisor.readers.communication import Origin
from scheduler_advisor.readers.store import read_history
from scheduler_advisor.replay_summary import summarised

T0 = datetime(2026, 10, 5, tzinfo=UTC)
SAME = {"cluster": "c", "source": "test"}
PLANTED = 0.2
NETWORK = Policy().with_values(
    {"placement": "topology", "topology.slowdown": "true", "topology.oversubscription": 4}
)
TIGHT, LOOSE = ("n0", "n1"), ("n0", "n2")  # one leaf; two leaves under one spine


def at(hours):
    return T0 + timedelta(hours=hours)


def excess_of(nodes):
    """What the table of links says of two H100 nodes in two leaves, uplinks shared by 4."""
    from scheduler_advisor.engine.parts.allreduce import allreduce_s, spread_of
    from scheduler_advisor.engine.parts.places import narrowed_links

    links, message = narrowed_links("H100", NETWORK), 1024.0 * (1 << 20)
    leaf = {"n0": 0, "n1": 0, "n2": 1, "n3": 1}
    paths = [(0, leaf[name], int(name[1]), 0, 8) for name in nodes]
    best = [(0, 0, 0, 0, 8), (0, 0, 1, 0, 8)]
    return (
        allreduce_s(spread_of(paths), links, message) / allreduce_s(spread_of(best), links, message)
        - 1
    )


@pytest.fixture
def filled(store):
    """A store with four nodes in two leaves and runs: id, name, nodes, first hour, hours."""

    def fill(*runs):
        nodes = [
            Node(node=f"n{one}", gpu_model="H100", gpus=8, leaf=f"l{one // 2}", spine="s",
                 valid_from=T0 - timedelta(days=9), **SAME)
            for one in range(4)
        ]  # fmt: skip
        facts = []
        for job_id, name, places, start, hours in runs:
            facts += [
                Job(job_id=job_id, name=name, user_name="u", submit_at=at(start), **SAME),
                JobRun(run_id=f"{job_id}.1", job_id=job_id, attempt=1, submit_at=at(start),
                       start_at=at(start), end_at=at(start + hours), gpus=8 * len(places),
                       user_name="u", state="COMPLETED", **SAME),
            ]  # fmt: skip
            facts += [
                Allocation(run_id=f"{job_id}.1", node=node, gpus=8, start_at=at(start),
                           end_at=at(start + hours), **SAME)
                for node in places
            ]  # fmt: skip
        with store.work() as work:
            work.append_facts([*nodes, *facts])
        return store

    return fill


def history(store, policy=NETWORK):
    return read_history(store, "c", T0, T0 + timedelta(days=7), policy).read


def repeats(name="train", fraction=PLANTED, first=0):
    """Two runs in one leaf of ten hours, two over two leaves as much longer as f makes them."""
    long = 10 * (1 + fraction * excess_of(LOOSE))
    return [
        (f"{name}{number}", name, places, first + 20 * number, 10.0 if places is TIGHT else long)
        for number, places in enumerate((TIGHT, LOOSE, TIGHT, LOOSE))
    ]


def traffic(store, job_id, places, start, hours, *, link=0.0, net=0.0, active=None):
    """Counters that grow by so many bytes a second and GPU, from a billion on."""
    ticks = [(minute / 60, 1e9 + 60 * minute) for minute in range(0, int(hours * 60), 30)]
    columns = (
        "cluster node gpu_uuid gpu_index run_id ts step_s nvlink_tx_bytes sm_active_ratio source"
    )
    sample = {name: [] for name in columns.split()}
    host = {name: [] for name in ("cluster", "node", "ts", "step_s", "net_tx_bytes", "source")}
    for node in places:
        for hour, seconds in ticks:
            host_row = ("c", node, at(start + hour + 0.01), 1800.0, seconds * net * 8, "test")
            for name, value in zip(host, host_row, strict=True):
                host[name].append(value)
            for gpu in range(8):
                row = ("c", node, f"{node}-{gpu}", gpu, f"{job_id}.1", at(start + hour + 0.01),
                       1800.0, seconds * link, active, "test")  # fmt: skip
                for name, value in zip(sample, row, strict=True):
                    sample[name].append(value)
    with store.work() as work:
        work.append("sample", sample)
        work.append("host_sample", host)


def test_repeated_runs_in_one_leaf_and_over_two_give_the_planted_fraction(filled):
    read = history(filled(*repeats()))
    (one,) = read.communication.classes
    assert (one.user, one.name, one.gpus, one.origin) == ("u", "train", 16, Origin.REPEATS)
    assert one.fraction == pytest.approx(PLANTED, rel=0.01)
    assert (np.abs(read.jobs.comm_milli - 1000 * PLANTED) <= 1).all()
    # All of them would have taken ten hours where they lie best.
    assert (np.abs(read.jobs.run - 36_000) <= 36).all()


def test_looser_runs_that_were_no_slower_mean_no_communication(filled):
    read = history(filled(*repeats(fraction=0.0)))
    assert read.communication.classes[0].fraction == 0.0
    assert read.communication.classes[0].origin is Origin.REPEATS
    assert read.jobs.comm_milli.tolist() == [1] * 4  # known, and as little as can be said


def test_one_run_on_each_side_is_no_measurement(filled):
    read = history(filled(*repeats()[:2]))
    assert read.communication.classes[0].origin is Origin.DEFAULT
    assert read.jobs.comm_milli.tolist() == [0, 0]


def test_traffic_over_nvlink_is_the_share_of_its_line_rate(filled):
    store = filled(("j", "one node", ("n0",), 0, 4.0))
    traffic(store, "j", ("n0",), 0, 4.0, link=0.3 * 450e9)
    (one,) = history(store).communication.classes
    assert one.origin is Origin.TRAFFIC
    assert one.fraction == pytest.approx(0.3, rel=1e-6)


def test_traffic_over_the_network_counts_for_gangs_on_several_nodes(filled):
    store = filled(("j", "two nodes", LOOSE, 0, 4.0))
    traffic(store, "j", LOOSE, 0, 4.0, link=0.01 * 450e9, net=0.4 * 50e9)
    (one,) = history(store).communication.classes
    assert one.fraction == pytest.approx(0.4, rel=1e-6)


def test_what_hides_behind_work_costs_nothing(filled):
    store = filled(("j", "overlaps", ("n0",), 0, 4.0))
    traffic(store, "j", ("n0",), 0, 4.0, link=0.3 * 450e9, active=0.9)
    (one,) = history(store).communication.classes
    assert one.fraction == pytest.approx(0.1, rel=1e-6)


def test_a_counter_that_begins_anew_says_nothing(filled):
    store = filled(("j", "reloaded", ("n0",), 0, 4.0))
    traffic(store, "j", ("n0",), 0, 4.0, link=1e9)
    with store.work() as work:
        work.execute("UPDATE sample SET nvlink_tx_bytes = 0 WHERE ts > ?", [at(3)])
    assert history(store).communication.classes[0].origin is Origin.DEFAULT


def test_repeats_come_before_traffic_and_the_summary_names_what_each_class_rests_on(filled):
    store = filled(*repeats(), ("t", "traffic", LOOSE, 100, 4.0), ("d", "default", LOOSE, 110, 4.0))
    traffic(store, "train0", TIGHT, 0, 10.0, net=0.01 * 50e9)
    traffic(store, "t", LOOSE, 100, 4.0, net=0.4 * 50e9)
    found = read_history(store, "c", T0, T0 + timedelta(days=7), NETWORK)
    spread = NETWORK.with_values({"placement": "worst-fit"})
    # Chosen by name, neighbours now lie in two leaves.
    fleet = replace(found.cluster, leaf=("l0", "l1", "l0", "l1"))
    summary = summarised(simulate(found.read.jobs, fleet, spread), read=found.read)
    told = {one["name"]: one["origin"] for one in summary["communication_classes"]}
    assert told == {"train": "repeats", "traffic": "traffic", "default": "default"}
    ratios = summary["all_reduce_penalty_by_origin_ratio"]
    assert sum(ratios.values()) == pytest.approx(1.0)
    assert min(ratios.values()) > 0


def test_a_policy_in_which_the_network_does_not_matter_asks_for_nothing(filled):
    read = history(filled(*repeats()), Policy())
    assert read.communication is None
    assert not read.jobs.comm_milli.any()
