"""Which nodes a job may use: jobs alike in that form a class, nodes alike a group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.errors import ClusterError
from scheduler_advisor.engine.jobs import Jobs

Ints = NDArray[np.int64]
MOST_PARTITIONS = 62  # a job's partitions are bits of one integer


@dataclass(frozen=True, slots=True)
class Groups:
    """Classes of jobs, groups of nodes, who may use what, and who competes with whom."""

    of_job: Ints
    of_node: Ints
    member: Ints  # [class, group]
    component: Ints  # class -> its queue: classes that share a node wait together


def grouped(jobs: Jobs, cluster: Cluster, places: Ints | None = None) -> Groups:
    """Classes and groups for these jobs on this cluster. With `places`, [node, column], nodes of
    one group also lie in one place, and jobs of one class say the same of the network."""
    of_job, keys = _classes(jobs, cluster, places is not None)
    masks = np.zeros((len(keys), len(cluster)), bool)
    for at, (models, features, reservation, parts, _) in enumerate(keys):
        masks[at] = _allowed(jobs, cluster, models, features, reservation, parts)
    rows = masks.T if places is None else np.hstack((masks.T, places))
    used, of_node = np.unique(rows, axis=0, return_inverse=True)
    used = used[:, : len(keys)]
    member = np.ascontiguousarray(used.T, dtype=np.int64)  # another layout: compiled twice
    return Groups(of_job, of_node.reshape(-1).astype(np.int64), member, _components(member))


def _classes(
    jobs: Jobs, cluster: Cluster, by_network: bool
) -> tuple[Ints, list[tuple[int, int, int, int, int]]]:
    parts = allowed_partitions(jobs, cluster)
    network = jobs.topology.codes if by_network else np.zeros(len(jobs), np.int64)
    columns = (jobs.gpu_models.codes, jobs.features.codes, jobs.reservation.codes, parts, network)
    if all(len(column) == 0 or (column == column[0]).all() for column in columns):
        first = tuple(int(column[0]) if len(column) else 0 for column in columns)
        return np.zeros(len(jobs), np.int64), [first]  # type: ignore[list-item]
    rows, of_job = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return of_job.reshape(-1).astype(np.int64), [tuple(row) for row in rows.tolist()]


def allowed_partitions(jobs: Jobs, cluster: Cluster) -> Ints:
    """Per job the partitions, as bits, that it asks for and whose limits it keeps."""
    bits = np.zeros(len(jobs), np.int64)
    if len(cluster.partitions) > MOST_PARTITIONS:
        raise ClusterError(f"cluster: more than {MOST_PARTITIONS} partitions")
    tasks = jobs.tasks + (jobs.rest_gpus > 0)
    for at, part in enumerate(cluster.partitions):
        keeps = asks_for(jobs, cluster, at)
        if part.max_limit_s is not None:
            keeps &= jobs.limit <= part.max_limit_s
        if part.max_gpus_per_job is not None:
            keeps &= jobs.gpus <= part.max_gpus_per_job
        if part.max_nodes_per_job is not None:
            keeps &= tasks <= part.max_nodes_per_job
        bits |= keeps.astype(np.int64) << at
    return bits


def asks_for(jobs: Jobs, cluster: Cluster, at: int) -> NDArray[np.bool_]:
    """Who names the partition, or names none where it is a default."""
    part = cluster.partitions[at]
    by_code = np.array(
        [part.name in name.split("|") if name else part.default for name in jobs.partitions.names],
        bool,
    )
    return by_code[jobs.partitions.codes]


def tiers(jobs: Jobs, cluster: Cluster) -> Ints:
    """Per job the highest priority tier among its partitions; 0 where it has none."""
    highest = np.full(len(jobs), np.iinfo(np.int64).min)
    for at, part in enumerate(cluster.partitions):
        asked = asks_for(jobs, cluster, at)
        highest[asked] = np.maximum(highest[asked], part.tier)
    highest[highest == np.iinfo(np.int64).min] = 0
    return highest


def _allowed(
    jobs: Jobs, cluster: Cluster, models: int, features: int, reservation: int, parts: int
) -> NDArray[np.bool_]:
    mask = np.ones(len(cluster), bool)
    wanted = {name for name in jobs.gpu_models.names[models].split("|") if name}
    if wanted:
        mask &= np.array([model in wanted for model in cluster.gpu_model], bool)
    needed = {name for name in jobs.features.names[features].split("&") if name}
    if needed:
        mask &= np.array([needed <= has for has in cluster.features], bool)
    if cluster.partitions:
        nodes = np.zeros(len(cluster), bool)
        for at, part in enumerate(cluster.partitions):
            if (parts >> at) & 1:
                nodes[[cluster.index[name] for name in part.nodes]] = True
        mask &= nodes
    if name := jobs.reservation.names[reservation]:
        nodes = np.zeros(len(cluster), bool)
        for held in cluster.reservations:
            if held.name == name:
                nodes[[cluster.index[node] for node in held.nodes]] = True
        mask &= nodes
    return mask


def _components(member: Ints) -> Ints:
    """Classes linked by shared groups, numbered from 0; a class without nodes is on its own."""
    classes, groups = member.shape
    label = np.arange(classes)
    for group in range(groups):
        linked = np.flatnonzero(member[:, group])
        if len(linked) > 1:
            joined = np.isin(label, label[linked])
            label[joined] = label[linked].min()
    _, numbered = np.unique(label, return_inverse=True)
    return numbered.reshape(-1).astype(np.int64)
