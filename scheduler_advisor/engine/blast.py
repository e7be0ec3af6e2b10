"""What one failure takes down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler_advisor.engine.outcome import Outcome

WHOLE = 1000


@dataclass(frozen=True, slots=True)
class BlastRadius:
    """GPUs in use and jobs that one failure takes down, at the instant asked for."""

    fullest_node_gpus: float
    fullest_node_jobs: int
    mean_node_gpus: float
    mean_node_jobs: float
    fullest_leaf_gpus: float
    fullest_leaf_jobs: int


def blast_radius(outcome: Outcome, at: int) -> BlastRadius:
    """What the failure of the fullest node, an average node, the fullest leaf switch costs."""
    jobs, nodes = outcome.jobs, len(outcome.cluster)
    running = np.flatnonzero((outcome.start <= at) & (at < outcome.end) & outcome.started)
    gpus, count = np.zeros(nodes), np.zeros(nodes, np.int64)
    leaves, leaf_of = np.unique(np.array(outcome.cluster.leaf), return_inverse=True)
    leaf_gpus, leaf_jobs = np.zeros(len(leaves)), np.zeros(len(leaves), np.int64)
    for job in running.tolist():
        placed = outcome.nodes(job)
        size = np.full(len(placed), jobs.gpus_per_task[job] + jobs.gpu_milli[job] / WHOLE)
        if jobs.rest_gpus[job]:
            size[-1] = jobs.rest_gpus[job]
        np.add.at(gpus, placed, size)
        count[np.unique(placed)] += 1
        np.add.at(leaf_gpus, leaf_of[placed], size)
        leaf_jobs[np.unique(leaf_of[placed])] += 1
    top, leaf = int(np.argmax(gpus)), int(np.argmax(leaf_gpus))
    return BlastRadius(
        float(gpus[top]),
        int(count[top]),
        float(gpus.mean()),
        float(count.mean()),
        float(leaf_gpus[leaf]),
        int(leaf_jobs[leaf]),
    )
