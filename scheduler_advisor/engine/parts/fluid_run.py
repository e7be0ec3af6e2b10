"""The door of the parts' driver: jobs, a cluster and a policy in, an outcome out."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.groups import Groups, grouped
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.live.settings import Reclaim, Stop
from scheduler_advisor.engine.outcome import STATES, State
from scheduler_advisor.engine.parts.ask import lift, place
from scheduler_advisor.engine.parts.driver import driver_of
from scheduler_advisor.engine.parts.fluid import Fluid
from scheduler_advisor.engine.parts.fluid_outcome import FluidOutcome
from scheduler_advisor.engine.parts.fluid_resize import least_tasks
from scheduler_advisor.engine.parts.levels import Level
from scheduler_advisor.engine.parts.mig import WHOLE
from scheduler_advisor.engine.parts.places import NEEDS, needs_of
from scheduler_advisor.engine.parts.settings import Defrag, Elastic, Sharing
from scheduler_advisor.engine.policy import (
    STATIC_ORDERS,
    Backfill,
    Order,
    Placement,
    Policy,
    Preemption,
)
from scheduler_advisor.engine.prepare import order_bands
from scheduler_advisor.engine.shape_table import hopeless_shapes, shape_table

PLACEMENTS = (
    Placement.FIRST_FIT,
    Placement.BEST_FIT,
    Placement.WORST_FIT,
    Placement.TOPOLOGY,
)
_LEVELS = {number: str(level) for level, number in NEEDS.items() if level is not Level.ISLAND}


ORDERS = (*STATIC_ORDERS, Order.FAIR_SHARE, Order.DRF)
TIMED = "preemption that takes time"
AT_ONCE = "set preemption.grace_s=0 and preemption.gib_per_gpu=0"
BACKFILLS = (Backfill.NONE, Backfill.GREEDY, Backfill.EASY)


def check_fluid(jobs: Jobs, cluster: Cluster, policy: Policy) -> None:
    """Raises PolicyError for what this driver does not know, with the key to change."""
    eviction, shares = policy.eviction, bool(jobs.gpu_milli.any())
    stops = policy.preemption is not Preemption.NONE or policy.quota.reclaim is not Reclaim.NONE
    shared = policy.sharing.kind not in (Sharing.ASKED, Sharing.NONE)
    slow = stops and eviction.takes_time
    unknown = {
        f"backfill {policy.backfill}; set backfill to one of {', '.join(BACKFILLS)}": (
            policy.backfill not in BACKFILLS
        ),
        f"placement {policy.placement}; set placement to one of {', '.join(PLACEMENTS)}": (
            policy.placement not in PLACEMENTS
        ),
        "gang = false; set gang=true": not policy.gang,
        f"order {policy.order}; set order to one of {', '.join(ORDERS)}": policy.order
        not in ORDERS,
        "whole-node plans; set backfill.whole_nodes=false": policy.backfill_whole_nodes,
        "backfill.interval_s; set it to 0": policy.backfill_interval_s > 0,
        "preemption.mode = suspend; set preemption.mode=requeue": stops
        and eviction.mode is Stop.SUSPEND,
        f"stopping or moving jobs that share GPUs by sharing = {policy.sharing.kind}; set"
        " sharing=asked, or preemption=none, quota.reclaim=none and defrag=none": shared
        and shares
        and (stops or policy.defrag.kind is Defrag.PENDING),
        f"{TIMED} where nodes fail; {AT_ONCE}": slow and bool(cluster.outages),
        f"{TIMED} where jobs take parts of GPUs; {AT_ONCE}": slow and shares,
        "backfill easy where jobs take parts of GPUs; set backfill=greedy": shares
        and policy.backfill is Backfill.EASY,
        "headroom where jobs are resized; set elastic=fixed": cluster.headroom_gpus > 0
        and policy.elastic.kind is Elastic.RESIZE,
    }
    for what, there in unknown.items():
        if there:
            because = ", ".join(driver_of(jobs, policy).because) or "the plain driver"
            raise PolicyError(f"policy: {because} does not go with {what}")
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
    settled = policy.order if policy.order in STATIC_ORDERS else Order.FIFO
    bands = order_bands(jobs, cluster, replace(policy, order=settled)).tolist()
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
    if fluid.general:
        alone = [fluid.never_alone(job) for job in range(len(jobs))]
        found = found | np.array(alone, bool)
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
    short = _short_s(fluid)
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
        preemptions=arrays(fluid.stops.count if fluid.general else [0] * size),
        place_start=np.concatenate(([0], np.cumsum(counts)))[:-1].astype(np.int64),
        place_node=arrays([node for place in fluid.places for node in place]),
        deadlocks=(),
        holding_gpu_s=fluid.kept_sum / WHOLE,
        left_s=arrays([one.left for one in progress]),
        room_by=arrays(fluid.stops.by) if fluid.general else None,
        room_asked_at=arrays(fluid.stops.asked_at) if fluid.general else None,
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


def arrays(values: list[int]) -> NDArray[np.int64]:
    """As the outcome keeps them."""
    return np.array(values, np.int64)


def _short_s(fluid: Fluid) -> int:
    """Replica-seconds that were wanted and did not run."""
    short = 0
    for job in np.flatnonzero(fluid.jobs.service).tolist():
        since = int(fluid.jobs.submit[job])
        until = since + int(fluid.jobs.run[job])
        start = fluid.first[job] if fluid.starts[job] else until
        short += max(0, min(start, until) - since)
    return short
