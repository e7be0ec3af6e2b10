"""Limits of associations and QoS as counters that a start raises and an end lowers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.limits import Limit, Scope
from scheduler_advisor.engine.waiting import MAX_JOBS, MAX_MILLI
from scheduler_advisor.engine.world import COUNTED, WHOLE, Limits

Ints = NDArray[np.int64]
NO_LIMIT = 1 << 60


def counters_of(jobs: Jobs, cluster: Cluster) -> tuple[Limits, NDArray[np.bool_]]:
    """The counters, and the jobs that are over a limit all alone and so can never run."""
    size = asked(jobs)
    alone = np.zeros(len(jobs), bool)
    columns: list[Ints] = []
    max_milli: list[int] = []
    max_jobs: list[int] = []
    for limit in cluster.limits:
        bound = bound_by(jobs, limit)
        gpus = NO_LIMIT if limit.max_gpus is None else limit.max_gpus * WHOLE
        count = NO_LIMIT if limit.max_jobs is None else limit.max_jobs
        alone |= bound & ((size > gpus) | (count < 1))
        if limit.scope is Scope.JOB:
            continue
        number = _number(jobs, limit) + len(max_milli)
        counted = bound_by(jobs, replace(limit, but_qos=(), but_partitions=()))
        columns.append(np.where(bound, number, np.where(counted, number + COUNTED, -1)))
        made = int(number.max(initial=len(max_milli))) + 1 - len(max_milli)
        max_milli += [gpus] * made
        max_jobs += [count] * made
    table = np.zeros((len(max_milli), 4), np.int64)
    table[:, MAX_MILLI] = max_milli
    table[:, MAX_JOBS] = max_jobs
    of_job = np.stack(columns, axis=1) if columns else np.full((len(jobs), 1), -1, np.int64)
    return Limits(table, -np.sort(-of_job, axis=1)), alone


def asked(jobs: Jobs) -> Ints:
    """Thousandths of GPUs that each job asks for."""
    task = np.where(jobs.gpu_milli > 0, jobs.gpu_milli, jobs.gpus_per_task * WHOLE)
    return jobs.tasks * task + jobs.rest_gpus * WHOLE


def bound_by(jobs: Jobs, limit: Limit) -> NDArray[np.bool_]:
    """The jobs that a limit binds."""
    first = [name.partition("|")[0] for name in jobs.partitions.names]
    columns = (
        (jobs.qos, jobs.qos.names, limit.qos, (), limit.but_qos),
        (jobs.account, jobs.account.names, limit.account, limit.below, ()),
        (jobs.user, jobs.user.names, limit.user, (), ()),
        (jobs.partitions, first, limit.partition, (), limit.but_partitions),
    )
    bound = np.ones(len(jobs), bool)
    for column, names, wanted, others, but in columns:
        if wanted is not None or but:
            own = [(wanted in (None, name) or name in others) and name not in but for name in names]
            bound &= np.array(own, bool)[column.codes]
    return bound


def _number(jobs: Jobs, limit: Limit) -> Ints:
    if limit.scope is Scope.USER:
        return jobs.user.codes
    if limit.scope is Scope.ACCOUNT:
        return jobs.account.codes
    return np.zeros(len(jobs), np.int64)
