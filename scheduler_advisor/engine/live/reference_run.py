"""A replay of the general driver told slowly: instants one after the other, a pass at each."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.live.reference import HOUR_S, LiveWorld
from scheduler_advisor.engine.live.reference_leaving import (
    force_out,
    node_gone,
    resolve,
    write_ends,
    write_on,
    written,
)
from scheduler_advisor.engine.live.reference_pass import run_pass
from scheduler_advisor.engine.live.reference_tree import leaf_names, tree_of
from scheduler_advisor.engine.policy import Order, Policy, Preemption
from scheduler_advisor.engine.reference import _edges, _outages, components, never, order_key
from scheduler_advisor.engine.reference_world import FULL, Job, Space, jobs_of
from scheduler_advisor.engine.shapes import fitted


@dataclass(frozen=True)
class LiveReference:
    """Per job; None where it has not happened."""

    first_start: list[int | None]
    start: list[int | None]
    end: list[int | None]
    nodes: list[list[int]]
    starts: list[int]
    lost_s: list[int]
    overhead_s: list[int]
    left_s: list[int]
    preemptions: list[int]
    unplaceable: list[int]
    by: list[int]
    asked_at: list[int | None]


def live_reference(jobs: Jobs, cluster: Cluster, policy: Policy) -> LiveReference:
    """Replays `jobs` on `cluster` under `policy`."""
    jobs = fitted(jobs, int(cluster.gpus.max(initial=0)))
    keys = [order_key(jobs, cluster, Policy(), index) for index in range(len(jobs))]
    made = jobs_of(jobs, cluster, policy, keys)
    spaces = {
        node: Space(
            [FULL] * int(cluster.gpus[node]),
            int(cluster.cpu_milli[node]),
            int(cluster.mem_mib[node]),
        )
        for node in range(len(cluster))
    }
    world = LiveWorld(jobs, cluster, policy, made, spaces)
    world.nodes = tree_of(jobs, policy)
    world.leaf = leaf_names(jobs, policy)
    for counts in (world.lost, world.overhead, world.preempted, world.by):
        counts.update(dict.fromkeys(range(len(jobs)), 0))
    hopeless = [
        job.index
        for job in made
        if never(world, job)
        or any(
            node.maximum is not None and world.size(job) > node.maximum
            for node in world.node(job).path()
        )
    ]
    able = [job for job in made if job.index not in set(hopeless)]
    world.component = components(able)
    if policy.backfill_whole_nodes:  # one queue over all nodes
        world.component = dict.fromkeys(world.component, 0)
    _loop(world, able)
    ended = set(world.ended)
    return LiveReference(
        [job.starts[0] if job.starts else None for job in made],
        [job.starts[-1] if job.index in ended else None for job in made],
        [job.ends[-1] if job.index in ended else None for job in made],
        [[node for node, _ in job.placed] for job in made],
        [len(job.starts) for job in made],
        list(world.lost.values()),
        list(world.overhead.values()),
        [job.left for job in made],
        list(world.preempted.values()),
        hopeless,
        list(world.by.values()),
        [world.asked_at.get(job.index) for job in made],
    )


def _loop(world: LiveWorld, jobs: list[Job]) -> None:
    waiting = {job.index: int(world.jobs.eligible[job.index]) for job in jobs}
    parents: dict[int, set[int]] = {}
    for child, parent in world.jobs.parent_of.tolist():
        parents.setdefault(child, set()).add(parent)
    outages = sorted(_outages(world.cluster))

    def ready() -> list[int]:
        done = set(world.ended)
        return [index for index in sorted(waiting) if parents.get(index, set()) <= done]

    while True:
        instants = [waiting[index] for index in ready()]
        instants += [run.end for run in world.running if run.end < 1 << 60]
        instants += [at for at, *_ in outages] + write_ends(world)
        instants += [at for at in [*_edges(world), *_wakes(world)] if at > world.now]
        if not instants:
            break
        world.now = max(world.now, min(instants))
        write_on(world)
        while done := [run for run in world.running if run.end <= world.now]:
            run = min(done, key=lambda one: (one.end, one.job.index))
            if world.told_to_leave(run) and run.end < world.natural[run.job.index]:
                force_out(world, run)
            else:
                world.complete(run)
        written(world)
        resolve(world)
        while outages and outages[0][0] <= world.now:
            _outage(world, *outages.pop(0)[1:])
        resolve(world)  # a failure may have taken the last victim
        for index in ready():
            if waiting[index] <= world.now:
                world.enqueue(world.all[index])
                del waiting[index]
        run_pass(world)


def _wakes(world: LiveWorld) -> list[int]:
    """Instants at which something may change although nothing ends or arrives."""
    part, policy = world.policy.eviction, world.policy
    wakes: list[int] = []
    stops = policy.preemption is not Preemption.NONE or policy.quota.reclaim != "none"
    for run in world.running:
        if world.told_to_leave(run) or not stops:
            continue
        if part.min_run_s and world.stoppable(run.job):
            wakes.append(run.start + part.min_run_s)
        if policy.order is Order.LAS:
            before = world.attained(run.job, run.start)
            for one in policy.ordering.levels():
                missing = one * 1000 - before
                if missing > 0 and world.size(run.job):
                    wakes.append(run.start + -(-missing // world.size(run.job)))
    if world.budget_out and world.running:
        wakes.append((world.now // HOUR_S + 1) * HOUR_S)
    interval = policy.backfill_interval_s
    more = interval and (world.now % interval or world.running or world.claims)
    if more and world.queue and world.blocked:
        wakes.append((world.now // interval + 1) * interval)
    return wakes


def _outage(world: LiveWorld, down: int, node: int, kills: bool) -> None:
    world.down[node] = world.down.get(node, 0) + (1 if down else -1)
    if down:
        node_gone(world, node, kills)
