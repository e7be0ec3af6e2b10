"""What `unstrand pack` does, apart from its options: only it loads the compiler."""

from __future__ import annotations

import csv
import io
import json
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.hashes import VERSION, digest
from scheduler_advisor.engine.packing import (
    Nodes,
    Packing,
    PackPolicy,
    Pods,
    Prepared,
    Ties,
    fragmentation_milli,
    in_order,
    inflated,
)
from scheduler_advisor.readers.pods import (
    read_pack_nodes,
    read_pod_order,
    read_pods,
    read_tie_order,
)
from unstrand.commands.progress import working
from unstrand.commands.result_file import write_result


@dataclass(frozen=True, slots=True, kw_only=True)
class PackQuestion:
    """The options of one run, as given."""

    pods: Path
    nodes: Path
    policy: str
    ties: str
    inflate: Fraction | None
    seed: int
    order: Path | None


def pack_to_files(question: PackQuestion, out: Path, placements: Path | None) -> str:
    """Pack, write the result and the placements, and return one line for people."""
    began = time.process_time()
    pods, nodes = read_pods(question.pods), read_pack_nodes(question.nodes)
    rule = _policy(question.policy, question.ties)
    ready = Prepared(pods, nodes, rule, order=_arrivals(pods, nodes, question), seed=question.seed)
    read_s = time.process_time() - began
    compile_s = _compiled(nodes, rule)
    with working(f"packing {len(ready.pods):,} pods"):
        began = time.process_time()
        packing = ready.run()
        engine_s = time.process_time() - began
    speed = {"read_s": read_s, "compile_s": compile_s, "engine_s": engine_s}
    document = _document(packing, fragmentation_milli(pods, nodes), question, speed)
    write_result(out, json.dumps(document, indent=2) + "\n")
    if placements is not None:
        write_result(placements, _placements(packing))
    return (
        f"{packing.allocated_ratio:.2%} of {packing.capacity_milli // 1000:,} GPUs allocated, "
        f"{packing.placed:,} of {len(packing.pods):,} pods placed: {out}"
    )


def _policy(score: str, ties: str) -> PackPolicy:
    if ties in set(Ties) - {Ties.LISTED}:
        return PackPolicy.named(score, ties)
    path = Path(ties)
    if not path.exists() and not path.suffix:
        return PackPolicy.named(score, ties)  # refuses the misspelt rule by name
    return PackPolicy.named(score, Ties.LISTED, read_tie_order(path))


def _arrivals(pods: Pods, nodes: Nodes, question: PackQuestion) -> NDArray[np.int64]:
    if question.order is not None:
        return in_order(pods, read_pod_order(question.order))
    if question.inflate is None:
        random = np.random.Generator(np.random.PCG64(question.seed))
        return random.permutation(len(pods)).astype(np.int64)
    return inflated(pods, question.inflate, nodes.capacity_milli, question.seed)


def _compiled(nodes: Nodes, rule: PackPolicy) -> float:
    """CPU seconds until the kernels are loaded or compiled: a first pod of no weight."""
    began = time.process_time()
    zero, one = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    Prepared(Pods(["warm-up"], zero, zero, one, one, [""]), nodes, rule, seed=0).run()
    return time.process_time() - began


def _document(
    packing: Packing, empty: float, question: PackQuestion, speed: dict[str, float]
) -> dict[str, Any]:
    rule = packing.policy
    return {
        "allocated_ratio": packing.allocated_ratio,
        "curve": [
            {
                "demand_ratio": point.demand_ratio,
                "allocated_ratio": point.allocated_ratio,
                "fragmentation_milli_gpu": point.fragmentation_milli_gpu,
            }
            for point in packing.curve()
        ],
        "fragmentation_empty_milli_gpu": empty,
        "fragmentation_end_milli_gpu": float(packing.fragmentation_milli_after[-1]),
        "capacity_milli_gpu": packing.capacity_milli,
        "pods": len(packing.pods),
        "placed": packing.placed,
        "failed": packing.failed,
        "pods_per_second": len(packing.pods) / max(speed["engine_s"], 1e-6),
        **speed,
        "scores_computed": packing.scores_computed,
        "policy": str(rule.score),
        "ties": question.ties,
        "seed": question.seed,
        "engine_version": VERSION,
        "policy_hash": digest(VERSION, str(rule.score), str(rule.ties), rule.listed),
        "workload_hash": packing.workload_hash,
        "cluster_hash": packing.cluster_hash,
    }


def _placements(packing: Packing) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["seq", "pod", "node", "gpus"])
    masks = packing.gpu_mask.tolist()
    for seq, (pod, node, mask) in enumerate(
        zip(packing.pods.name, packing.node.tolist(), masks, strict=True)
    ):
        gpus = "|".join(str(g) for g in range(mask.bit_length()) if mask >> g & 1)
        writer.writerow([seq, pod, "" if node < 0 else packing.nodes.name[node], gpus])
    return text.getvalue()
