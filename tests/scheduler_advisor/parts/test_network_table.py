"""Who hangs where, over which links, and what the keys of the parts read back to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_advisor.engine import Cluster, Jobs, Policy, PolicyError, from_toml, preset, to_toml
from scheduler_advisor.engine.parts.allreduce import (
    PPM,
    allreduce_s,
    comm_of,
    slowdown_ppm,
    spread_of,
    stretched,
)
from scheduler_advisor.engine.parts.levels import Level, tree_of
from scheduler_advisor.engine.parts.links import links_of, read_links, shipped
from scheduler_advisor.engine.parts.places import islands_of, need_of
from scheduler_advisor.engine.parts.settings import part_keys
from scheduler_advisor.engine.parts.wired import refuse_unwired
from scheduler_advisor.readers.fleet import read_fleet

GIB = 2**30


def test_the_real_clos_has_119_leaves_under_three_spines(shared_data):
    path = shared_data / "traces" / "topology" / "lingjun_topo.csv"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    tree = tree_of(read_fleet(str(path)))
    assert [len(np.unique(one)) for one in (tree.leaf, tree.spine, tree.block)] == [119, 3, 1]
    assert np.bincount(tree.leaf).max() == 8
    assert tree.named == {Level.LEAF, Level.SPINE, Level.BLOCK}


def test_leaves_of_one_name_under_two_spines_are_two_and_the_unnamed_are_alone():
    tree = tree_of(
        Cluster.build(gpus=[8] * 4, leaf=["a", "a", "a", ""], spine=["x", "y", "x", "x"])
    )
    assert tree.leaf.tolist() == [0, 1, 0, 2]
    assert tree_of(Cluster.uniform(3, 8)).leaf.tolist() == [0, 0, 0]


def test_racks_that_a_leaf_spans_are_no_wider_domain():
    cluster = Cluster.build(gpus=[8] * 4, leaf=["a", "a", "b", "b"], rack=["1", "2", "3", "3"])
    tree = tree_of(cluster)
    assert tree.block.tolist() == [0, 0, 0, 0]
    assert tree.domains(Level.BLOCK).tolist() == [0, 1, 2, 2]
    assert tree.leaf.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-PCIE-40GB", "A100-PCIE"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("Tesla V100-SXM2-32GB", "V100"),
        ("NVIDIA H100 PCIe", "H100-PCIE"),
        ("something new", "*"),
        ("", "*"),
    ],
)
def test_a_model_finds_its_row_of_links(name, row):
    assert links_of(name).gpu_model == row


def test_every_row_of_links_says_where_it_is_from_and_gets_no_faster_with_distance():
    for row in shipped():
        assert len(row.source) > 20
        assert list(row.gb_s[2:]) == sorted(row.gb_s[2:], reverse=True)
        assert list(row.us) == sorted(row.us)
        assert row.gb_s[0] >= row.gb_s[2]
    with pytest.raises(PolicyError, match="line 2"):
        read_links("gpu_model,island_gpus\nH100,many\n")


def test_cards_in_pairs_are_islands_of_two_unless_the_inventory_knows_better():
    cluster = Cluster.build(gpus=[8, 8], gpu_model=["A100-PCIE", "H100"])
    assert islands_of(cluster).tolist() == [2, 0]
    four = Cluster.build(gpus=[8, 8], gpu_model=["A100-PCIE", "H100"], island_gpus=[4, 0])
    assert islands_of(four).tolist() == [4, 0]


def test_an_all_reduce_by_hand():
    """16 GPUs on two H100 nodes of one leaf, 1 GiB: a ring of 8 over NVLink, a ring of 2 over
    adapters with an eighth of the message each."""
    spread = spread_of((0, 0, node, 0, 8) for node in range(2))
    near = 14 * 3.4e-6 + 14 / 8 * GIB / 450e9
    far = 2 * 14e-6 + 2 / 2 * GIB / 8 / 50e9
    assert allreduce_s(spread, links_of("H100"), GIB) == pytest.approx(near + far)
    assert allreduce_s(spread_of([(0, 0, 0, 0, 1)]), links_of("H100"), GIB) == 0


@given(st.integers(2, 8), st.sampled_from([1.0, 2.0, 8.0]), st.sampled_from([2**20, GIB]))
def test_going_further_never_makes_an_all_reduce_faster(nodes, oversubscription, message):
    links = links_of("H100").narrowed(oversubscription, {})
    one_leaf = spread_of((0, 0, node, 0, 8) for node in range(nodes))
    leaves = spread_of((0, node, node, 0, 8) for node in range(nodes))
    spines = spread_of((node, node, node, 0, 8) for node in range(nodes))
    times = [allreduce_s(one, links, message) for one in (one_leaf, leaves, spines)]
    assert times == sorted(times)


@given(st.integers(0, 1000), st.integers(1, 10**6), st.floats(1, 9))
def test_slowdowns_are_what_the_formula_says(comm, run, ratio):
    slow = slowdown_ppm(comm, ratio, 1.0)
    assert slow == pytest.approx(PPM * (1 + comm / 1000 * (ratio - 1)), abs=1)
    assert stretched(run, slow) >= run
    assert slowdown_ppm(comm, 0.5, 1.0) == PPM


def test_a_fraction_that_nobody_measured_is_a_default_and_said_to_be_one():
    assert comm_of([0, 120, 0], [1, 8, 64], 50) == [(0, True), (120, False), (300, True)]


def test_keys_of_the_parts_read_back_and_wrong_ones_name_the_right_ones():
    policy = preset("easy").with_values(
        {
            "placement": "topology",
            "topology.level": "leaf",
            "topology.binding": "required",
            "topology.oversubscription": "4",
            "defrag": "hours",
            "defrag.hours": "2|14",
            "sharing": "mig",
            "elastic.kind": "resize",
        }
    )
    assert from_toml(to_toml(policy)) == policy
    assert policy.topology.oversubscription == 4
    assert "topology.level" in part_keys()
    for key, value, told in (
        ("topology.level", "planet", "island, node, leaf, spine, block"),
        ("topology.oversubscription", "0.5", "1 or more"),
        ("topology.slowdown", "maybe", "true or false"),
        ("defrag.moves", "-1", "0 or more"),
        ("defrag.hours", "25", "0-23"),
        ("sharing", "half", "none, mig, mps"),
        ("elastic.colour", "red", "elastic.resize_s"),
    ):
        with pytest.raises(PolicyError, match=told):
            policy.with_values({key: value})


def test_a_rule_of_the_network_goes_with_placement_by_the_network():
    with pytest.raises(PolicyError, match="placement = topology"):
        refuse_unwired(Policy().with_values({"topology.level": "leaf"}))


def test_a_job_says_what_it_requires():
    cluster = Cluster.build(gpus=[8] * 2, leaf=["a", "b"], gpu_model=["H100"] * 2)
    policy = Policy().with_values({"topology.level": "leaf", "topology.binding": "required"})
    assert need_of("", cluster, policy) == 2
    assert need_of("leaf", cluster, policy) == 0
    assert need_of("required:node", cluster, policy) == 1
    with pytest.raises(PolicyError, match="write LEVEL"):
        need_of("required:moon", cluster, policy)
    with pytest.raises(PolicyError, match="column spine"):
        need_of("required:spine", cluster, policy)
    assert len(Jobs.build(submit=[0], run=[1], gpus=[1], topology=["required:leaf"])) == 1


def test_two_rules_that_stop_each_others_jobs_in_turn_are_refused_without_a_guard():
    endless = Policy().with_values({
        "preemption": "priority", "preemption.reach": "cluster", "quota.reclaim": "strict",
        "quota.queues.a.guarantee": "1",
    })  # fmt: skip
    with pytest.raises(PolicyError, match=r"preemption\.max_per_job"):
        refuse_unwired(endless)
    refuse_unwired(endless.with_values({"preemption.max_per_job": "1"}))
    refuse_unwired(endless.with_values({"preemption.reach": "queue"}))
