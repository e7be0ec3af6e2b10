"""The door of the parts' driver: jobs, a cluster and a policy in, an outcome out."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.groups import Groups, grouped
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.outcome import STATES, State
from scheduler_advisor.engine.parts.ask import lift, place
from scheduler_advisor.engine.parts.fluid import Fluid, arrays
from scheduler_advisor.engine.parts.fluid_outcome import FluidOutcome
from scheduler_advisor.engine.parts.fluid_resize import least_tasks
from scheduler_advisor.engine.parts.levels import Level
from scheduler_advisor.engine.parts.mig import WHOLE
from scheduler_advisor.engine.parts.places import NEEDS, needs_of
from scheduler_advisor.engine.parts.settings import ANY_TOPOLOGY, Defrag, Elastic, Sharing
from scheduler_advisor.engine.policy import Backfill, Placement, Policy, Preemption
from scheduler_advisor.engine.prepare import order_bands
from scheduler_advisor.engine.shape_table import hopeless_shapes, shape_table

PLACEMENTS = (
    Placement.FIRST_FIT,
    Placement.BEST_FIT,
    Placement.WORST_FIT,
    Placement.TOPOLOGY,
)
_LEVELS = {number: str(level) for level, number in NEEDS.items() if level is not Level.ISLAND}


def is_fluid(jobs: Jobs, policy: Policy) -> bool:
    """Whether jobs change while they run, so that the parts' driver has to replay them."""
    return (
        policy.defrag.kind is not Defrag.NONE
        or policy.elastic.kind is not Elastic.FIXED
        or policy.sharing.kind is not Sharing.ASKED
        or bool(jobs.service.any())
    )


def check_fluid(jobs: Jobs, cluster: Cluster, policy: Policy) -> None:
    """Raises PolicyError for what this driver does not know."""
    unknown = {
        f"backfill {policy.backfill} (use none or greedy)": policy.backfill
        not in (Backfill.NONE, Backfill.GREEDY),
        f"placement {policy.placement} (use {', '.join(PLACEMENTS)})": policy.placement
        not in PLACEMENTS,
        "gang = false": not policy.gang,
        f"order {policy.order}, quotas or timed preemption": replace(
            policy, placement=Placement.BEST_FIT, topology=ANY_TOPOLOGY
        ).live,
        "preemption": policy.preemption is not Preemption.NONE,
        "limits of associations": bool(cluster.limits),
        "reservations": bool(cluster.reservations),
        "headroom": cluster.headroom_gpus > 0,
        "dependencies between jobs": len(jobs.parent_of) > 0,
        "exclusive nodes": bool(jobs.exclusive.any()),
        "tasks on nodes of their own": bool(jobs.distinct_nodes.any()),
    }
    for what, there in unknown.items():
        if there:
            raise PolicyError(
                f"policy: defragmentation, sharing, elastic jobs and services do not go with {what}"
                " yet"
            )
    if policy.defrag.kind is Defrag.HOURS and not policy.defrag.hours:
        raise PolicyError("policy: defrag = hours needs defrag.hours, such as 2|14")


def simulate_fluid(jobs: Jobs, cluster: Cluster, policy: Policy) -> FluidOutcome:
    """Replays `jobs`, whose shapes are stated."""
    began = time.process_time()
    fluid = prepared_fluid(jobs, cluster, policy)
    unplaceable = hopeless_jobs(fluid)
    prepared = time.process_time()
    fluid.run(unplaceable)
    return _outcome(fluid, unplaceable, prepared - began, time.process_time() - prepared)


def prepared_fluid(jobs: Jobs, cluster: Cluster, policy: Policy) -> Fluid:
    """A replay that is ready to run; raises PolicyError where it cannot be."""
    check_fluid(jobs, cluster, policy)
    groups = grouped(jobs, cluster)
    nodes = [
        tuple(np.flatnonzero(groups.member[one][groups.of_node]).tolist())
        for one in range(len(groups.member))
    ]
    bands = order_bands(jobs, cluster, policy).tolist()
    submit = jobs.submit.tolist()
    needs = needs_of(jobs, cluster, policy).tolist()
    if policy.placement is not Placement.TOPOLOGY:
        needs = [0] * len(jobs)  # nobody hears what a job requires of the network
    fluid = Fluid(
        jobs,
        cluster,
        policy,
        [(bands[job], submit[job], job) for job in range(len(jobs))],
        [nodes[one] for one in groups.of_job.tolist()],
        [_LEVELS.get(need, "") for need in needs],
    )
    fluid.component = groups.component[groups.of_job].tolist()
    fluid.kinds = _kinds(cluster, groups)
    return fluid


def _kinds(cluster: Cluster, groups: Groups) -> list[int]:
    """Nodes of one kind take the same jobs and make them run alike."""
    pairs: dict[tuple[int, str], int] = {}
    return [
        pairs.setdefault((group, model), len(pairs))
        for group, model in zip(groups.of_node.tolist(), cluster.gpu_model, strict=True)
    ]


def hopeless_jobs(fluid: Fluid) -> list[bool]:
    """Jobs that the empty cluster could not hold: too large for it, no GPU that can be cut for
    them, or no domain of the kind that they require."""
    jobs, sharing = fluid.jobs, fluid.policy.sharing.kind
    if fluid.policy.elastic.kind is Elastic.RESIZE:
        least = [least_tasks(fluid, ask) for ask in fluid.asks]
        jobs = replace(jobs, tasks=np.array(least, np.int64))
    if sharing is Sharing.NONE:
        whole = np.where(jobs.gpu_milli > 0, 1, jobs.gpus_per_task)
        jobs = replace(jobs, gpus_per_task=whole, gpu_milli=np.zeros_like(whole))
    groups = grouped(jobs, fluid.cluster)
    shapes, of_job = shape_table(jobs, groups)
    found = hopeless_shapes(fluid.cluster, groups, shapes)[of_job]
    known: dict[object, bool] = {}
    for job, ask in enumerate(fluid.asks):
        cut = ask.milli > 0 and sharing is Sharing.MIG
        if found[job] or not (ask.need or cut):
            continue
        shape = fluid.shape(job)
        if shape not in known:
            pieces = place(fluid.floor, ask, int(jobs.tasks[job]), fluid.policy, fluid.tree)
            known[shape] = pieces is None
            lift(fluid.floor, pieces or [], job)
            for machine in fluid.floor:
                for gpu in machine.gpus:
                    gpu.cuts = []
        found[job] = known[shape]
    return [bool(one) for one in found]


def _outcome(
    fluid: Fluid, unplaceable: list[bool], prepare_s: float, drive_s: float
) -> FluidOutcome:
    jobs, size = fluid.jobs, len(fluid.jobs)
    state = np.where(fluid.over, STATES.index(State.DONE), STATES.index(State.PENDING))
    state[np.array(unplaceable, bool)] = STATES.index(State.UNPLACEABLE)
    counts = [len(place) for place in fluid.places]
    progress = fluid.progress
    lost = arrays([one.lost for one in progress])
    overhead = arrays([one.overhead for one in progress])
    wall = arrays(fluid.end) - arrays(fluid.last_start)
    alone = arrays([one.last_work for one in progress])
    short = fluid.short_s()
    return FluidOutcome(
        jobs=jobs,
        cluster=fluid.cluster,
        policy=fluid.policy,
        first_start=arrays(fluid.first),
        start=arrays(fluid.last_start),
        end=arrays(fluid.end),
        starts=arrays(fluid.starts),
        state=state.astype(np.int8),
        lost_s=lost,
        overhead_s=overhead,
        preemptions=np.zeros(size, np.int64),
        place_start=np.concatenate(([0], np.cumsum(counts)))[:-1].astype(np.int64),
        place_node=arrays([node for place in fluid.places for node in place]),
        deadlocks=(),
        holding_gpu_s=0.0,
        held_gpu_s=fluid.held_sum / WHOLE,
        queue_s=fluid.queue_sum,
        events=fluid.events,
        passes=fluid.passes,
        examined=fluid.examined,
        last_instant=fluid.now,
        shadows=0,
        prepare_s=prepare_s,
        drive_s=drive_s,
        place_count=arrays(counts),
        migrations=arrays(fluid.migrations),
        resizes=arrays(fluid.resizes),
        stretched_s=np.where(fluid.over, np.maximum(wall - alone, 0), 0),
        passes_of_moves=fluid.move_passes,
        paused_gpu_s=fluid.paused / WHOLE,
        short_replica_min=short / 60,
        free_gpu_s=fluid.idle_sum / WHOLE,
        down_gpu_s=fluid.down_sum / WHOLE,
        first_instant=fluid.began or 0,
        slow_ppm=arrays(fluid.speeds.slow) if fluid.policy.topology.slowdown else None,
    )
