from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.slurm.split import gpus_per_node, shares
from collector.slurm.tres import Tres


@pytest.mark.parametrize(
    ("total", "installed", "counts"),
    [
        (16, [8, 8], [8, 8]),
        (5, [8, 8], [3, 2]),
        (10, [8, 4], [6, 4]),
        (8, [8, 0], [8, 0]),
        (0, [8, 8], [0, 0]),
        (18, [8, 8], [9, 9]),
        (3, [0, 0], [2, 1]),
    ],
)
def test_gpus_are_even_and_within_what_a_node_has_while_there_is_room(total, installed, counts):
    assert gpus_per_node(total, installed) == counts


@given(st.integers(0, 200), st.lists(st.integers(0, 16), min_size=1, max_size=12))
def test_every_gpu_is_on_one_node_and_none_exceeds_its_own_while_another_has_room(total, installed):
    counts = gpus_per_node(total, installed)
    assert sum(counts) == total
    if total <= sum(installed):
        assert all(count <= size for count, size in zip(counts, installed, strict=True))


inventories = st.dictionaries(
    st.sampled_from(["n1", "n2", "n3", "n4"]),
    st.dictionaries(st.sampled_from([None, "a100", "h100", "t4"]), st.integers(1, 8)),
)
held = st.builds(
    Tres,
    cpus=st.none() | st.integers(0, 500),
    mem_mib=st.none() | st.integers(0, 10**6),
    gpus_generic=st.integers(0, 40),
    gpus_by_type=st.dictionaries(st.sampled_from(["a100", "h100"]), st.integers(0, 20)),
)


@given(
    held, st.lists(st.sampled_from(["n1", "n2", "n3", "n4"]), min_size=1, unique=True), inventories
)
def test_the_shares_add_up_to_what_the_run_held(resources, nodes, inventory):
    found = shares(resources, nodes, inventory)
    assert sum(share.gpus for share in found) == resources.gpus
    assert {share.node for share in found} == set(nodes)
    for name in ("cpus", "mem_mib"):
        total = getattr(resources, name)
        values = [getattr(share, name) for share in found]
        assert total is None or sum(values) == total
    assert all(share.gpus >= 0 for share in found)


def test_the_model_is_the_nodes_even_where_accounting_names_another():
    found = shares(Tres(gpus_generic=2, gpus_by_type={"v100": 2}), ["n1"], {"n1": {"a100": 8}})
    assert [(share.gpu_model, share.gpus) for share in found] == [("a100", 2)]


def test_on_a_node_of_two_models_the_named_ones_come_first():
    inventory = {"n1": {"a100": 4, "t4": 4}}
    named = shares(Tres(gpus_generic=3, gpus_by_type={"t4": 2}), ["n1"], inventory)
    assert {share.gpu_model: share.gpus for share in named} == {"t4": 2, "a100": 1}
    plain = shares(Tres(cpus=8, gpus_generic=5), ["n1"], inventory)
    assert {share.gpu_model: share.gpus for share in plain} == {"a100": 4, "t4": 1}
    assert sum(share.cpus for share in plain) == 8
