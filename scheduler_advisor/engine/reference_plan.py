"""Conservative backfill of the reference: every queued job has a place in a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scheduler_advisor.engine.policy import Backfill
from scheduler_advisor.engine.reference_world import Held, Job, Placed, Space, place

if TYPE_CHECKING:
    from scheduler_advisor.engine.reference import World


@dataclass(frozen=True)
class Booking:
    """Something held on a node during [since, until)."""

    node: int
    held: Held
    since: int
    until: int


def bookings(world: World, planned: dict[int, tuple[int, Placed]]) -> list[Booking]:
    """What running jobs hold until their believed end, and what planned jobs will hold."""
    held = [
        Booking(node, one, world.now, max(run.believed, run.start + 1))
        for run in world.running
        for node, one in run.placed
    ]
    for index, (start, placed) in planned.items():
        until = start + planned_length(world, world.all[index])
        held += [Booking(node, one, start, until) for node, one in placed]
    return held


def planned_length(world: World, job: Job) -> int:
    """At least one second, so that jobs of no length still take their place."""
    return max(1, world.believed(job) - world.now)


def earliest(world: World, job: Job, booked: list[Booking]) -> tuple[int, Placed] | None:
    """The first instant at which the job fits for its whole length, and where."""
    length = planned_length(world, job)
    ends = {one.until for one in booked} | {rule.end_at for rule in world.cluster.reservations}
    for at in sorted({world.now, *(end for end in ends if end > world.now)}):
        spaces = window(world, job, at, at + length, booked)
        placed = place(job, spaces, world.policy)
        if placed is not None:
            return at, placed
    return None


def window(
    world: World, job: Job, since: int, until: int, booked: list[Booking]
) -> dict[int, Space]:
    """The least that is free on each usable node at any moment of [since, until)."""
    spaces = {}
    for node in world.usable(job, since):
        mine = [one for one in booked if one.node == node]
        moments = {since, *(one.since for one in mine if since < one.since < until)}
        least = _at(world, node, since, mine)
        for moment in moments:
            then = _at(world, node, moment, mine)
            pairs = zip(least.gpus, then.gpus, strict=True)
            least.gpus = [min(one, other) for one, other in pairs]
            least.cpu, least.mem = min(least.cpu, then.cpu), min(least.mem, then.mem)
            least.tasks = max(least.tasks, then.tasks)
        spaces[node] = least
    return spaces


def _at(world: World, node: int, moment: int, mine: list[Booking]) -> Space:
    """Counts, not identities: which whole GPUs a job will get is settled when it starts."""
    cluster = world.cluster
    gpus = int(cluster.gpus[node])
    space = Space([1000] * gpus, int(cluster.cpu_milli[node]), int(cluster.mem_mib[node]))
    for one in mine:
        if one.since <= moment < one.until:
            for _ in one.held.gpus:
                space.gpus[space.gpus.index(1000)] = 0
            space.cpu -= one.held.cpu
            space.mem -= one.held.mem
            space.tasks += 1
    space.gpus.sort()
    return space


def conservative_pass(world: World, queue: list[Job]) -> None:
    """Gives every examined job its place in the plan, in order; starts those whose turn is now.
    Jobs that are held back, and jobs too far behind the head, have no place."""
    keeps = world.policy.backfill is Backfill.CONSERVATIVE_COMPRESS
    planned: dict[int, tuple[int, Placed]] = world.planned if keeps else {}
    depth, cap = world.policy.backfill_depth, world.policy.backfill_max_limit_s
    waits_before = False
    behind_head: int | None = None
    refused = []
    for job in queue:
        if behind_head is not None:
            behind_head += 1
        if planned.get(job.index, (world.now, []))[0] < world.now:
            del planned[job.index]
        if (depth and behind_head is not None and behind_head > depth) or world.held_back(job):
            planned.pop(job.index, None)
            continue
        behind_head = behind_head or 0
        if job.index not in planned:
            found = earliest(world, job, bookings(world, planned))
            if found is None:
                waits_before = True
                continue
            planned[job.index] = found
        at, placed = planned[job.index]
        if at == world.now and not (waits_before and cap and job.limit > cap):
            del planned[job.index]
            start_planned(world, job, placed)
            continue
        if at == world.now:
            refused.append(job.index)
        waits_before = True
    for index in refused:
        del planned[index]


def start_planned(world: World, job: Job, placed: Placed) -> None:
    """Starts the job on the nodes of the plan, with the lowest whole GPUs that are free there."""
    real = [
        (node, world.spaces[node].take(need))
        for (node, _), need in zip(placed, job.needs, strict=True)
    ]
    world.start(job, real)


def compress(world: World) -> None:
    """After a completion: every planned job in queue order moves as early as it can."""
    for job in sorted((world.all[index] for index in world.planned), key=lambda job: job.key):
        del world.planned[job.index]
        found = earliest(world, job, bookings(world, world.planned))
        if found is not None:
            world.planned[job.index] = found
