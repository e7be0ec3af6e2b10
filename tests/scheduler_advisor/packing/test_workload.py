"""How a pod list becomes a load, and what is refused."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from scheduler_advisor.engine.packing import PackingError, PackPolicy, in_order, inflated, pack

GPU = (1, 1, 1, 1000, "")


def test_inflation_uses_every_pod_once_before_it_repeats_any(build_pods):
    pods = build_pods(*[GPU] * 10)
    order = inflated(pods, Fraction(13, 10), 20_000, seed=1)
    assert sorted(order[:10]) == list(range(10))
    assert len(order) == 26


def test_inflation_stops_before_the_pod_that_would_pass_the_load(build_pods):
    pods = build_pods(*[(1, 1, 1, 700, "")] * 3, (1, 1, 4, 1000, ""))
    for seed in range(20):
        order = inflated(pods, Fraction(1), 20_000, seed)
        asked = pods.total_gpu_milli[order].sum()
        assert 16_000 < asked <= 20_000


def test_a_list_that_already_asks_for_more_is_only_shuffled(build_pods):
    order = inflated(build_pods(*[GPU] * 9), Fraction(1), 4_000, seed=3)
    assert sorted(order) == list(range(9))


def test_the_same_seed_gives_the_same_order_and_another_seed_another(build_pods):
    pods = build_pods(*[GPU] * 30)
    first, again, other = (inflated(pods, Fraction(1), 40_000, seed) for seed in (5, 5, 6))
    assert first.tolist() == again.tolist() != other.tolist()


def test_pods_drawn_again_are_drawn_uniformly(build_pods):
    pods = build_pods(*[GPU] * 4)
    drawn = Counter(inflated(pods, Fraction(1), 40_000_000, seed=9)[4:].tolist())
    assert all(count == pytest.approx(10_000, rel=0.05) for count in drawn.values())


def test_an_order_with_an_unknown_pod_is_refused(build_pods):
    with pytest.raises(PackingError, match="'p9'"):
        in_order(build_pods(GPU), ["p0", "p9"])


def test_an_order_may_repeat_pods(build_pods):
    assert in_order(build_pods(GPU, GPU), ["p1", "p1", "p0"]).tolist() == [1, 1, 0]


def test_typical_tasks_are_those_of_the_list_and_not_of_the_order(build_pods, build_nodes):
    pods = build_pods(GPU, GPU, (1, 1, 1, 500, ""))
    nodes = build_nodes((8, 8, 2, "A"))
    packing = pack(pods, nodes, PackPolicy(), order=np.array([2, 2], dtype=np.int64))
    # One half GPU held: two of three pods cannot use the other half.
    assert packing.fragmentation_milli_after[1] == pytest.approx(500 * 2 / 3)


def test_the_curve_ends_at_the_last_pod_and_counts_failed_demand(build_pods, build_nodes):
    packing = pack(build_pods(*[GPU] * 5), build_nodes((9, 9, 4, "A")), PackPolicy())
    points = packing.curve(step=0.25)
    assert [point.demand_ratio for point in points] == [0, 0.25, 0.5, 0.75, 1.0, 1.25]
    assert [point.allocated_ratio for point in points] == [0, 0.25, 0.5, 0.75, 1.0, 1.0]
    assert (packing.placed, packing.failed) == (4, 1)


@pytest.mark.parametrize(
    ("score", "ties", "message"),
    [("fdg", "name", "no packing policy 'fdg'"), ("fgd", "nmae", "no tie rule 'nmae'")],
)
def test_a_misspelt_policy_is_refused_with_the_choices(score, ties, message):
    with pytest.raises(PackingError, match=f"{message}: choose one of"):
        PackPolicy.named(score, ties)


def test_a_tie_order_must_name_every_node(build_pods, build_nodes):
    nodes = build_nodes((1, 1, 1, "A"), (1, 1, 1, "A"))
    for listed in (["n0"], ["n0", "n1", "n2"], ["n0", "n1", "n1"]):
        with pytest.raises(PackingError, match="exactly once"):
            pack(build_pods(GPU), nodes, PackPolicy.named("fgd", "listed", listed))


def test_a_tie_order_decides_among_equal_nodes(build_pods, build_nodes):
    nodes = build_nodes((9, 9, 1, "A"), (9, 9, 1, "A"))
    packing = pack(build_pods(GPU), nodes, PackPolicy.named("best-fit", "listed", ["n1", "n0"]))
    assert packing.nodes.name[packing.node[0]] == "n1"


def test_several_shared_gpus_and_nodes_without_gpus_are_refused(build_pods, build_nodes):
    with pytest.raises(PackingError, match="2 GPUs of 500"):
        build_pods((1, 1, 2, 500, ""))
    with pytest.raises(PackingError, match="no node has a GPU"):
        pack(build_pods(GPU), build_nodes((1, 1, 0, "")), PackPolicy())


def test_memory_keeps_a_pod_away_although_it_is_no_part_of_fragmentation(build_pods, build_nodes):
    nodes = build_nodes((9, 1, 2, "A"), (9, 9, 2, "A"))
    packing = pack(build_pods((1, 5, 1, 1000, "")), nodes, PackPolicy())
    assert packing.nodes.name[packing.node[0]] == "n1"
