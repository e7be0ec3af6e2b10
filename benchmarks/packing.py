"""Place-only packing: pods per CPU-second by policy, tie rule and cluster size.

    .venv/bin/python benchmarks/packing.py [--openb ../shared/data/traces/openb]

Ratios are between rows of the same run on the same core; compile time is shown by itself and is
no part of any of them. Each run's counts are asserted, so a fast wrong answer cannot pass.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from scheduler_advisor.engine.packing import (
    Nodes,
    PackPolicy,
    Pods,
    Prepared,
    Score,
    Ties,
    inflated,
)
from scheduler_advisor.readers.pods import read_pack_nodes, read_pods

REPEATS = 3
SIZES = (64, 512, 4_096, 32_768)
# The authors' program on this input, measured for this project on the same kind of machine.
AUTHORS_PODS_PER_S = {Score.FGD: 3.2, Score.BEST_FIT: 5.9}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--openb", type=Path, default=Path("../shared/data/traces/openb"))
    folder = parser.parse_args().openb
    print(f"first pod of a process (compile or load from the cache): {first_pod():.2f} s")
    if folder.is_dir():
        openb(folder)
    else:
        print(f"no openb at {folder}: only made-up clusters")
    by_size()
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def first_pod() -> float:
    began = time.process_time()
    made_up(64, 1).run()
    return time.process_time() - began


def openb(folder: Path) -> None:
    pods = read_pods(folder / "openb_pod_list_default.csv")
    nodes = read_pack_nodes(folder / "openb_node_list_gpu_node.csv")
    order = inflated(pods, Fraction(13, 10), nodes.capacity_milli, 42)
    print(f"\nopenb: {len(nodes):,} nodes, {len(order):,} pods at 130% demand")
    print(f"{'policy':16} {'ties':12} {'pods/s':>11} {'scores/pod':>11} {'allocated':>10}")
    policies = [PackPolicy(score) for score in Score]
    policies += [PackPolicy(ties=ties) for ties in (Ties.MOST_PACKED, Ties.EMPTIEST, Ties.RANDOM)]
    for policy in policies:
        speed, packing = measured(lambda p=policy: Prepared(pods, nodes, p, order=order, seed=42))
        assert packing.placed + packing.failed == len(order)
        authors = AUTHORS_PODS_PER_S.get(policy.score) if policy.ties is Ties.NAME else None
        beside = f"  {speed / authors:,.0f} x the authors' program" if authors else ""
        print(
            f"{policy.score:16} {policy.ties:12} {speed:11,.0f} "
            f"{packing.scores_computed / len(order):11.1f} {packing.allocated_ratio:10.2%}{beside}"
        )


def by_size() -> None:
    print("\nmade-up clusters of 8-GPU nodes, FGD, pods asking for 130% of the GPUs")
    seconds = []
    for gpus in SIZES:
        ready = made_up(gpus, 7)
        pods = len(ready.pods)
        speed, packing = measured(lambda g=gpus: made_up(g, 7))
        assert len(packing.node) == pods
        seconds.append(1 / speed)
        print(f"{gpus:7,} GPUs {pods:8,} pods {speed:11,.0f} pods/s")
    growth = math.log(seconds[-1] / seconds[0]) / math.log(SIZES[-1] / SIZES[0])
    print(f"cost per pod grows as GPUs ^ {growth:.2f}")


def made_up(gpus: int, seed: int) -> Prepared:
    random = np.random.default_rng(seed)
    count = gpus // 8
    nodes = Nodes(
        [f"n{i:05d}" for i in range(count)],
        np.full(count, 96_000),
        np.full(count, 786_432),
        np.full(count, 8),
        random.choice(["A100", "H100"], count).tolist(),
    )
    size = random.choice(
        [0, 1, 1, 1, 1, 2, 4, 8], 20_000, p=[0.1, 0.3, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05]
    )
    share = np.where(
        (size == 1) & (random.random(20_000) < 0.4),
        random.choice([100, 250, 500, 750], 20_000),
        1000,
    )
    cpu = np.maximum(size, 1) * random.choice([4_000, 8_000, 12_000, 16_000], 20_000)
    pods = Pods(
        [str(i) for i in range(20_000)],
        cpu,
        cpu * 4,
        size,
        np.where(size > 0, share, 0),
        random.choice(["", "", "", "A100", "H100"], 20_000).tolist(),
    )
    asked = np.cumsum(pods.total_gpu_milli[random.integers(0, 20_000, 400_000)])
    enough = int(np.searchsorted(asked, 1.3 * nodes.capacity_milli))
    order = np.random.default_rng(seed).integers(0, 20_000, enough)
    return Prepared(pods, nodes, PackPolicy(), order=order, seed=seed)


def measured(prepare):
    """Pods per CPU-second, the best of some runs, and the packing."""
    best, packing = 0.0, None
    for _ in range(REPEATS):
        ready = prepare()
        began = time.process_time()
        packing = ready.run()
        best = max(best, len(ready.pods) / max(time.process_time() - began, 1e-9))
    return best, packing


if __name__ == "__main__":
    main()
