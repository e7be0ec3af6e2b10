"""The FGD paper's cluster: its fragmentation, its program's decisions, its published table."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from scheduler_advisor.engine.packing import (
    PackPolicy,
    Score,
    Ties,
    fragmentation_milli,
    in_order,
    inflated,
    pack,
)

# Mean allocation in % at 130% demand over seeds 42-51, Weng et al., USENIX ATC 2023 (artifact).
PUBLISHED = {
    "default": {"random": 87.47, "dot-product": 90.85, "best-fit": 93.08, "fgd": 95.39},
    "gpushare40": {"random": 86.00, "dot-product": 89.56, "best-fit": 91.69, "fgd": 94.15},
    "gpuspec33": {"random": 86.46, "dot-product": 89.14, "best-fit": 93.09, "fgd": 94.55},
}
PACKED_BY_GPU = {
    "default": {"gpu-clustering": 91.88, "gpu-packing": 92.00},
    "gpushare40": {"gpu-clustering": 90.02, "gpu-packing": 90.03},
    "gpuspec33": {"gpu-clustering": 92.12, "gpu-packing": 93.22},
}
SEEDS = range(42, 52)


def test_the_empty_cluster_has_the_published_fragmentation(openb):
    assert round(fragmentation_milli(openb.pods("default"), openb.nodes), 2) == 866_232.55


@pytest.fixture(scope="module")
def replay(openb):
    """Pack the authors' own order under their own tie ranks."""
    pods = openb.pods("default")
    order = in_order(pods, [row["base_pod"] for row in openb.decisions])

    def run(score):
        policy = PackPolicy.named(score, "listed", openb.tie_order)
        packing = pack(pods, openb.nodes, policy, order=order)
        nodes = ["" if n < 0 else packing.nodes.name[n] for n in packing.node]
        return packing, nodes

    return run


@pytest.mark.parametrize(
    ("score", "column", "different"),
    [
        ("fgd", "node_FGD_ours", 0),
        ("fgd", "node_FGD_go", 9),  # the authors add floats in another order: 9 ties fall otherwise
        ("best-fit", "node_BestFit", 0),
        ("gpu-packing", "node_GpuPacking", 0),
        ("gpu-clustering", "node_GpuClustering", 0),
        ("dot-product", "node_DotProd", 0),
    ],
)
def test_decisions_equal_those_of_the_authors_program(openb, replay, score, column, different):
    _, nodes = replay(score)
    pairs = zip(nodes, (row[column] for row in openb.decisions), strict=True)
    assert sum(ours != theirs for ours, theirs in pairs) == different


def test_fragmentation_follows_the_authors_curve_step_by_step(openb, replay):
    packing, _ = replay("fgd")
    theirs = np.array([float(row["frag_milli_FGD"]) for row in openb.curves])
    held = np.array([int(row["alloc_milli_FGD"]) for row in openb.curves])
    np.testing.assert_allclose(packing.fragmentation_milli_after[1:], theirs, atol=0.006)
    assert packing.allocated_milli_after[-1] == held[-1]


def mean_allocation(openb, variant, policy_of, seeds):
    pods = openb.pods(variant)
    ratios = []
    for seed in seeds:
        order = inflated(pods, Fraction(13, 10), openb.nodes.capacity_milli, seed)
        packing = pack(pods, openb.nodes, policy_of(seed), order=order, seed=seed)
        ratios.append(100 * packing.allocated_ratio)
    return float(np.mean(ratios))


@pytest.mark.prove
@pytest.mark.parametrize("variant", PUBLISHED)
def test_mean_allocation_over_ten_seeds_is_as_published(openb, variant, record_proof):
    means = {
        score: mean_allocation(openb, variant, lambda _, s=score: PackPolicy(Score(s)), SEEDS)
        for score in PUBLISHED[variant]
    }
    record_proof(f"fgd_{variant}", published=PUBLISHED[variant], ours=means)
    for score, mean in means.items():
        assert mean == pytest.approx(
            PUBLISHED[variant][score], abs=1.0 if score == "random" else 0.5
        )


@pytest.mark.parametrize("variant", PACKED_BY_GPU)
def test_packing_by_gpu_is_as_published_once_node_names_are_shuffled(openb, variant):
    """The authors rename nodes by a seeded permutation; these two rules feel it (openb's own names
    group equal nodes, which costs them up to 1.6 points), FGD and best-fit hardly do."""

    def shuffled(score):
        names = np.array(openb.nodes.name)
        return lambda seed: PackPolicy.named(
            score, "listed", np.random.default_rng(seed).permutation(names).tolist()
        )

    for score, published in PACKED_BY_GPU[variant].items():
        mean = mean_allocation(openb, variant, shuffled(score), SEEDS)
        assert mean == pytest.approx(published, abs=0.5)


@pytest.mark.prove
def test_the_tie_rule_decides_whether_fgd_wins(openb, record_proof):
    """The same score with spread ties allocates less than best-fit: the rule is part of FGD."""

    def mean(score, ties):
        return mean_allocation(openb, "default", lambda _: PackPolicy(score, ties), SEEDS[:3])

    found = {ties: mean(Score.FGD, ties) for ties in Ties if ties is not Ties.LISTED}
    found |= {
        "exact score, by name": mean(Score.FGD_EXACT, Ties.NAME),
        "best-fit": mean(Score.BEST_FIT, Ties.NAME),
    }
    record_proof("fgd_ties", mean_allocation={str(rule): mean for rule, mean in found.items()})
    assert found[Ties.NAME] == pytest.approx(95.3, abs=0.3)
    assert found[Ties.MOST_PACKED] == pytest.approx(95.2, abs=0.3)
    assert found["exact score, by name"] == pytest.approx(94.3, abs=0.3)
    assert found["best-fit"] == pytest.approx(93.1, abs=0.3)
    for spread in (Ties.RANDOM, Ties.EMPTIEST):
        assert 88 < found[spread] < found["best-fit"] - 2.5


def test_a_placement_looks_at_few_nodes(openb):
    pods = openb.pods("default")
    order = inflated(pods, Fraction(13, 10), openb.nodes.capacity_milli, 42)
    packing = pack(pods, openb.nodes, PackPolicy(), order=order)
    assert packing.scores_computed < 40 * len(order)  # of 1,213 nodes
