"""Changes of the jobs or the fleet instead of the policy: capped requests, load, estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from scheduler_advisor.checkpoints import Writing, as_asked
from scheduler_advisor.engine.cluster import UNLIMITED, Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.limits import Limit
from scheduler_advisor.engine.live.make_tree import leaves_of
from scheduler_advisor.engine.live.settings import QuotaPart
from scheduler_advisor.past import Past
from scheduler_advisor.search.catalogue import Alter


@dataclass(frozen=True, slots=True)
class World:
    """How the replayed world differs from the past.

    ``load``: the arrivals come that many times as fast. ``estimate``: limits are that many times
    the run time (0: as they were). ``checkpoint``: checkpoints and restores cost that many times
    as much. ``nodes``: that many more, or fewer. ``writing``: how checkpoints are written.
    ``limits``: of the cluster instead of its own. ``returns``: jobs of the queues ``owners`` (named
    by the columns ``owners_by``) run that many times as long: teams that lend come back.
    """

    alter: Alter = Alter.NOTHING
    nodes: int = 0
    load: float = 1.0
    estimate: float = 0.0
    checkpoint: float = 1.0
    writing: Writing = Writing.AS_IT_IS
    limits: tuple[Limit, ...] | None = None
    returns: float = 1.0
    owners: tuple[str, ...] = ()
    owners_by: str = "account"


SAME = World()


def altered(past: Past, world: World) -> Past:
    """The past in that world; the order of the jobs stays as it is."""
    jobs, cluster, known = past.jobs, past.cluster, past.checkpoints
    if world.writing is not Writing.AS_IT_IS or world.checkpoint != 1.0:
        known = known or as_asked(jobs)
        if known is not None:
            jobs, known = known.rewritten(jobs, world.writing, world.checkpoint)
    if world.alter is not Alter.NOTHING:
        jobs = capped(jobs, cluster, world.alter)
    if columns := _columns(jobs, world):
        jobs = jobs.changed(**columns)
    if world.returns != 1.0:
        jobs = _returned(jobs, world)
    if world.limits is not None:
        cluster = replace(cluster, limits=world.limits)
    if world.nodes:
        cluster = cluster.with_nodes(world.nodes)
    return replace(past, jobs=jobs, cluster=cluster, checkpoints=known)


def _columns(jobs: Jobs, world: World) -> dict[str, object]:
    """Columns that load, estimates and the cost of checkpoints change for all jobs."""
    columns: dict[str, object] = {}
    if world.load != 1.0:
        first = int(jobs.submit.min())
        for name in ("submit", "eligible"):
            after = (getattr(jobs, name) - first) / world.load
            columns[name] = first + after.astype(np.int64)
    if world.estimate:
        columns["limit"] = np.ceil(jobs.run * world.estimate).astype(np.int64)
    return columns


def _returned(jobs: Jobs, world: World) -> Jobs:
    names, leaf = leaves_of(jobs, QuotaPart(by=world.owners_by))
    own = np.array([name in world.owners for name in names], bool)[leaf]
    columns = {
        name: np.where(own, np.rint(getattr(jobs, name) * world.returns), getattr(jobs, name))
        for name in ("run", "limit")
    }
    return jobs.changed(**{name: column.astype(np.int64) for name, column in columns.items()})


def capped(jobs: Jobs, cluster: Cluster, alter: Alter) -> Jobs:
    """Requests of CPU (memory) cut to the share of a node that the job's GPUs are of its GPUs.

    The share is that of the node that has the least per GPU; jobs without GPUs stay as they are.
    """
    name = "cpu_milli" if alter is Alter.CAP_CPU else "mem_mib"
    of_node = getattr(cluster, name)
    with_gpus = (cluster.gpus > 0) & (of_node < UNLIMITED)
    if not with_gpus.any():
        return jobs
    per_gpu = int((of_node[with_gpus] // cluster.gpus[with_gpus]).min())
    most = int(cluster.gpus.max())
    # A job whose shape is left open holds full nodes; its tasks are made later.
    each = np.where(jobs.gpus_per_task > 0, jobs.gpus_per_task, np.minimum(jobs.gpus, most))
    share = np.where(jobs.gpu_milli > 0, jobs.gpu_milli / 1000, each)
    asked = getattr(jobs, name)
    cap = np.ceil(share * per_gpu).astype(np.int64)
    return jobs.changed(**{name: np.where(share > 0, np.minimum(asked, cap), asked)})


def caps_bind(jobs: Jobs, cluster: Cluster, alter: Alter) -> bool:
    """Whether the cap would change any request."""
    name = "cpu_milli" if alter is Alter.CAP_CPU else "mem_mib"
    return bool((getattr(capped(jobs, cluster, alter), name) != getattr(jobs, name)).any())
