"""Rules of Slurm that bind jobs beside the order: partitions, limits of QoS, numbers of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from collector.slurm.duration import limit_seconds
from scheduler_advisor.calibration.hierarchy import (
    GROUP_JOBS,
    OWN_JOBS,
    Hierarchy,
    gpu_limit,
    names_under,
)
from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.limits import Limit, Partition, Scope


def with_rules(
    cluster: Cluster, settings: Mapping[str, str], *, queues_are_qos: bool = False
) -> Cluster:
    """The cluster with the partitions' limits and tiers, and the limits of QoS and the job counts
    of accounts, from settings. ``queues_are_qos``: what a QoS may hold in all is a quota of the
    policy, and no limit here."""
    parts = tuple(_partition(part, settings) for part in cluster.partitions)
    hierarchy = Hierarchy(settings)
    limits = [limit for name in names_under(settings, "qos.")
              for limit in _limits(name, settings, hierarchy)]  # fmt: skip
    if queues_are_qos:
        limits = [replace(each, max_gpus=None) if each.scope is Scope.ALL and not each.partition
                  else each for each in limits]  # fmt: skip
        limits = [each for each in limits if (each.max_gpus, each.max_jobs) != (None, None)]
    limits += _job_counts(settings, hierarchy)
    return replace(cluster, partitions=parts, limits=(*cluster.limits, *limits))


def _job_counts(settings: Mapping[str, str], hierarchy: Hierarchy) -> list[Limit]:
    """How many jobs accounts, and each of their users, may run at once."""
    found = []
    for scope, key, before in ((Scope.ALL, "GrpJobs", GROUP_JOBS),
                               (Scope.USER, "MaxJobs", OWN_JOBS)):  # fmt: skip
        spared = hierarchy.before_accounts(before)
        for name in names_under(settings, "account."):
            count = settings.get(f"account.{name}.{key}", "")
            if count.isdigit():
                found.append(spared.spares(Limit(scope, max_jobs=int(count), account=name)))
    return found


def _partition(part: Partition, settings: Mapping[str, str]) -> Partition:
    def said(key: str) -> str:
        return settings.get(f"partition.{part.name}.{key}", "")

    nodes = said("MaxNodes")
    return replace(
        part,
        max_limit_s=limit_seconds(said("MaxTime")) if said("MaxTime") else part.max_limit_s,
        max_nodes_per_job=int(nodes) if nodes.isdigit() else part.max_nodes_per_job,
        tier=int(said("PriorityTier") or part.tier),
        default=said("Default") == "YES" or part.default,
    )


_QOS_LIMITS = (
    (Scope.USER, "MaxTRESPU", "MaxJobsPU"), (Scope.ACCOUNT, "MaxTRESPA", "MaxJobsPA"),
    (Scope.ALL, "GrpTRES", "GrpJobs"), (Scope.JOB, "MaxTRES", ""),
)  # fmt: skip


def _limits(qos: str, settings: Mapping[str, str], hierarchy: Hierarchy) -> list[Limit]:
    """Of the jobs of a QoS; of a partition's own QoS, of all jobs in the partition."""
    parts = [name for name in names_under(settings, "partition.")
             if settings.get(f"partition.{name}.QoS") == qos]  # fmt: skip
    found = []
    for scope, tres, jobs in _QOS_LIMITS:
        gpus = gpu_limit(settings.get(f"qos.{qos}.{tres}", ""))
        count = settings.get(f"qos.{qos}.{jobs}", "")
        limits = {
            tres: None if gpus is None else Limit(scope, max_gpus=gpus),
            jobs: Limit(scope, max_jobs=int(count)) if count.isdigit() else None,
        }
        for column, limit in limits.items():
            if limit is not None:
                before = hierarchy.before_job_qos(qos, column)
                found.append(before.spares(replace(limit, qos=qos)))
                before = hierarchy.before_partition_qos(qos, column)
                found += [before.spares(replace(limit, partition=name)) for name in parts]
    return _together(found)


def _together(limits: list[Limit]) -> list[Limit]:
    """GPUs and jobs of the same owners in one limit."""
    found: dict[Limit, Limit] = {}
    for each in limits:
        own = replace(each, max_gpus=None, max_jobs=None)
        seen = found.get(own, own)
        gpus = seen.max_gpus if each.max_gpus is None else each.max_gpus
        count = seen.max_jobs if each.max_jobs is None else each.max_jobs
        found[own] = replace(own, max_gpus=gpus, max_jobs=count)
    return list(found.values())
