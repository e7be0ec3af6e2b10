"""What a job's GPU count means on nodes of a given size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scheduler_advisor.engine.jobs import Jobs

WHOLE = 1000  # thousandths


def fitted(jobs: Jobs, node_gpus: int) -> Jobs:
    """The jobs with every shape stated: one task where the GPUs fit on one node of `node_gpus`,
    else full nodes and one more task for the rest. Shapes that are stated stay. Tasks that take a
    share of a GPU take no whole ones; a share of 1000 is a whole GPU."""
    open_shape = jobs.tasks == 0
    shared = jobs.gpu_milli > 0
    if not (open_shape.any() or shared.any()):
        return jobs
    node = max(node_gpus, 1)
    one = jobs.gpus <= node
    tasks = np.where(open_shape, np.where(one, 1, jobs.gpus // node), jobs.tasks)
    per_task = np.where(open_shape, np.where(one, jobs.gpus, node), jobs.gpus_per_task)
    rest = np.where(open_shape, np.where(one, 0, jobs.gpus % node), jobs.rest_gpus)
    per_task = np.where(shared, np.where(jobs.gpu_milli == WHOLE, 1, 0), per_task)
    tasks = np.where(shared & open_shape, 1, tasks)
    return replace(
        jobs,
        tasks=tasks,
        gpus_per_task=per_task,
        rest_gpus=np.where(shared, 0, rest),
        gpu_milli=np.where(jobs.gpu_milli == WHOLE, 0, jobs.gpu_milli),
    )
