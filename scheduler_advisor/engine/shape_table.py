"""The distinct shapes of a workload, and which of them the empty cluster could never hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.distinct import distinct_rows
from scheduler_advisor.engine.groups import Groups
from scheduler_advisor.engine.jit import kernel
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.shadow import tasks_in
from scheduler_advisor.engine.world import (
    DISTINCT,
    EXCLUSIVE,
    S_CLASS,
    S_CPU,
    S_FLAGS,
    S_GPU,
    S_MEM,
    S_MILLI,
    S_REST_CPU,
    S_REST_GPU,
    S_REST_MEM,
    S_SIZE,
    S_TASKS,
    WHOLE,
)

Ints = NDArray[np.int64]


def shape_table(jobs: Jobs, groups: Groups) -> tuple[Ints, Ints]:
    """One row per distinct shape (columns S_* of world.py), and each job's row."""
    flags = np.where(jobs.distinct_nodes > 0, DISTINCT, 0)
    flags |= np.where(jobs.exclusive > 0, EXCLUSIVE, 0)
    columns = [
        jobs.gpus_per_task,
        jobs.tasks,
        jobs.rest_gpus,
        jobs.cpu_milli,
        jobs.mem_mib,
        jobs.gpu_milli,
        flags,
        groups.of_job,
    ]
    of_job, first = distinct_rows(columns)
    gpu, tasks, rest, cpu, mem, milli, flag, cls = (column[first] for column in columns)
    per = np.maximum(gpu, 1)
    rest_cpu, rest_mem = -(-cpu * rest // per), -(-mem * rest // per)
    size = tasks * (gpu * WHOLE + milli) + rest * WHOLE
    plain = (milli == 0) & (flag == 0)
    rows = (gpu, cpu, mem, milli, flag, cls, size, tasks, rest, rest_cpu, rest_mem, plain)
    return np.stack(rows, axis=1).astype(np.int64), of_job


@kernel
def _fits(shapes: Any, member: Any, kinds: Any, fits: Any) -> None:
    """Marks the shapes that fit; `kinds` are rows of (group, GPUs, CPU, memory, how many)."""
    for at in range(len(shapes)):
        cpu = shapes[at, S_CPU]
        mem = shapes[at, S_MEM]
        flags = shapes[at, S_FLAGS]
        main = 0
        beside = -(1 << 60)  # by how much a node's room for tasks shrinks beside the rest
        for kind in range(len(kinds)):
            if member[shapes[at, S_CLASS], kinds[kind, 0]] == 0:
                continue
            gpus = kinds[kind, 1]
            need = shapes[at, S_GPU]
            if shapes[at, S_MILLI] != 0:
                gpus = gpus * (WHOLE // shapes[at, S_MILLI])
                need = 1
            cpus = kinds[kind, 2]
            mems = kinds[kind, 3]
            here = tasks_in(gpus, cpus, mems, 0, need, cpu, mem, flags)
            main += kinds[kind, 4] * here
            gpus = kinds[kind, 1] - shapes[at, S_REST_GPU]
            cpus -= shapes[at, S_REST_CPU]
            mems -= shapes[at, S_REST_MEM]
            if gpus >= 0 and cpus >= 0 and mems >= 0:
                left = 0 if flags else tasks_in(gpus, cpus, mems, 1, need, cpu, mem, flags)
                beside = max(beside, left - here)
        tasks = shapes[at, S_TASKS]
        fits[at] = main >= tasks and (shapes[at, S_REST_GPU] == 0 or main + beside >= tasks)


def hopeless_shapes(cluster: Cluster, groups: Groups, shapes: Ints) -> NDArray[np.bool_]:
    """Per shape whether the empty cluster, all nodes up, could not hold it."""
    columns = (groups.of_node, cluster.gpus, cluster.cpu_milli, cluster.mem_mib)
    kinds, counts = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
    fits = np.zeros(len(shapes), np.bool_)
    rows = np.column_stack((kinds, counts)).astype(np.int64)
    _fits(shapes, groups.member, rows, fits)
    spare = cluster.total_gpus - cluster.headroom_gpus
    return ~(fits & (shapes[:, S_SIZE] <= spare * WHOLE))
