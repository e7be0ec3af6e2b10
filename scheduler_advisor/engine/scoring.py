"""What placement by score is measured against: the workload's own typical tasks, and the nodes.

In time, FGD's task distribution is that of the jobs that are replayed: every task of every job
counts once (the last, smaller task of a job too), and memory, partitions and features do not tell
tasks apart. Place-only packing draws it from its list of pods in the same way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.distinct import distinct_rows
from scheduler_advisor.engine.errors import JobsError
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.packing.typical import Typical, most_frequent

Ints = NDArray[np.int64]
WHOLE = 1000
MOST_MODELS = 62  # models are bits of one integer
T_CPU, T_GPUS, T_MILLI, T_MODELS, T_TASKS, T_LEVEL = range(6)  # columns of the typical table
# Its last row holds numbers instead.
N_LEVELS, N_TOTAL, N_CPU, N_MILLI = range(4)
RANK, MODEL, MEMO = 0, 1, 2  # rows of the table of scores; the memory begins at MEMO
MEMO_CELLS = 1 << 25  # scores remembered at most: 256 MiB, and only those in use are touched


def typical_of(jobs: Jobs, bits: dict[str, int]) -> Typical:
    """The typical tasks of jobs whose shapes are stated."""
    sets = np.array([_bits_of(names, bits) for names in jobs.gpu_models.names], np.int64)
    models = sets[jobs.gpu_models.codes]
    shared = jobs.gpu_milli > 0
    gpus = np.where(shared, 1, jobs.gpus_per_task)
    milli = np.where(shared, jobs.gpu_milli, np.where(gpus > 0, WHOLE, 0))
    columns = [jobs.cpu_milli, gpus, milli, models, jobs.rest_gpus]
    of_job, first = distinct_rows(columns)
    cpu, gpus, milli, models, rest = (column[first] for column in columns)
    size = len(first)
    tasks = np.bincount(of_job, weights=jobs.tasks, minlength=size).astype(np.int64)
    last = np.where(rest > 0, np.bincount(of_job, minlength=size), 0)
    rest_cpu = -(-cpu * rest // np.maximum(gpus, 1))
    whole = np.full(size, WHOLE)
    rows = np.concatenate(
        (
            np.stack((cpu, gpus, milli, models), axis=1),
            np.stack((rest_cpu, rest, whole, models), axis=1)[rest > 0],
        )
    )
    counts = np.concatenate((tasks, last[rest > 0]))
    kept = counts > 0
    if not kept.any():
        empty = np.zeros(0, np.int64)
        return Typical(empty, empty, empty, empty, empty, np.zeros(1, np.int64), 1)
    return most_frequent(rows[kept].astype(np.int64), counts[kept])


def model_bits(jobs: Jobs, cluster: Cluster) -> dict[str, int]:
    """One bit for each GPU model that nodes have or jobs ask for."""
    asked = {model for names in jobs.gpu_models.names for model in names.split("|") if model}
    names = sorted(asked | {model for model in cluster.gpu_model if model})
    if len(names) > MOST_MODELS:
        raise JobsError(
            f"jobs: {len(names)} GPU models are more than the {MOST_MODELS} that fragmentation"
            " can tell apart; map spellings of one model to one name"
        )
    return {name: 1 << at for at, name in enumerate(names)}


def _bits_of(names: str, bits: dict[str, int]) -> int:
    return sum(bits[name] for name in set(names.split("|")) if name)


def node_models(cluster: Cluster, bits: dict[str, int]) -> Ints:
    """Each node's model as one bit, 0 where it has none."""
    return np.array([bits.get(model, 0) for model in cluster.gpu_model], np.int64)


def typical_table(typical: Typical, cluster: Cluster) -> Ints:
    """`typical` as one table (columns T_*); the last row holds N_*: how many levels, tasks in
    all, the CPU and the milli-GPUs of the largest node."""
    size = len(typical.cpu)
    table = np.zeros((max(size, len(typical.level)) + 1, 6), np.int64)
    columns = (typical.cpu, typical.gpus, typical.milli, typical.models, typical.pods)
    for at, column in enumerate(columns):
        table[:size, at] = column
    table[: len(typical.level), T_LEVEL] = typical.level
    table[-1, N_LEVELS] = len(typical.level)
    table[-1, N_TOTAL] = typical.total
    table[-1, N_CPU] = max(1, int(cluster.cpu_milli.max(initial=1)))
    table[-1, N_MILLI] = max(1, int(cluster.gpus.max(initial=1))) * WHOLE
    return table


def score_table(cluster: Cluster, bits: dict[str, int], shapes: int) -> Ints:
    """[row, node]: rank by name, model bit, then remembered scores; in the last column of those
    whose they are."""
    nodes = len(cluster)
    memo = max(1, min(2 * shapes, MEMO_CELLS // (nodes + 1)))
    table = np.zeros((MEMO + memo, nodes + 1), np.int64)
    order = np.argsort(np.array(cluster.names, dtype=str), kind="stable")
    table[RANK, order] = np.arange(nodes)
    table[MODEL, :nodes] = node_models(cluster, bits)
    return table
