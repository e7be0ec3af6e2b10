"""The typical tasks that fragmentation is measured against."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler_advisor.engine.packing.errors import PackingError
from scheduler_advisor.engine.packing.shapes import Ints, ModelBits, Pods, kinds_of


class Typical(NamedTuple):
    """The typical tasks that need GPUs, by rising ``milli`` and then CPU.

    ``pods``: how many pods each stands for; ``total``: pods of all typical tasks, also of those
    without a GPU. ``level[i]`` to ``level[i + 1]`` are the tasks of one ``milli``: only there can
    the number of GPUs that fit change.
    """

    cpu: Ints
    gpus: Ints
    milli: Ints
    models: Ints
    pods: Ints
    level: Ints
    total: int


def typical_tasks(pods: Pods, bits: ModelBits, coverage: float = 0.95) -> Typical:
    """The most frequent (cpu, gpus, gpu_milli, models) until ``coverage`` of the pods is reached.

    Among equal counts the larger task comes first (CPU, then thousandths, then GPUs). Memory does
    not tell tasks apart. Weng et al., USENIX ATC 2023.
    """
    if len(pods) == 0:
        raise PackingError("there are no pods: fragmentation needs a task distribution")
    kinds, kind = kinds_of(pods, bits)
    rows = np.stack([kinds.cpu, kinds.gpus, kinds.milli, kinds.models], axis=1)
    return most_frequent(rows, np.bincount(kind, minlength=len(rows)), coverage)


def most_frequent(rows: Ints, counts: Ints, coverage: float = 0.95) -> Typical:
    """The same from rows of (cpu, gpus, gpu_milli, models), repeats allowed, that stand for
    `counts` tasks each."""
    distinct, of = np.unique(rows, axis=0, return_inverse=True)
    count = np.bincount(of.reshape(-1), weights=counts, minlength=len(distinct)).astype(np.int64)
    cpu, gpus, milli, models = (np.ascontiguousarray(distinct[:, i]) for i in range(4))
    order = np.lexsort((models, gpus, milli, cpu, count))[::-1]
    covered = np.cumsum(count[order])
    last = int(np.searchsorted(covered, coverage * int(counts.sum()), side="left")) + 1
    chosen = order[:last]
    total = int(count[chosen].sum())
    chosen = chosen[gpus[chosen] > 0]
    chosen = chosen[np.lexsort((cpu[chosen], milli[chosen]))]
    starts = np.flatnonzero(np.diff(milli[chosen], prepend=-1))
    return Typical(
        cpu[chosen],
        gpus[chosen],
        milli[chosen],
        models[chosen],
        count[chosen],
        np.append(starts, len(chosen)).astype(np.int64),
        total,
    )
