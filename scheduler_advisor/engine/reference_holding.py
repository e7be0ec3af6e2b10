"""Gang scheduling switched off: tasks start as they fit and hold what they got."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler_advisor.engine.policy import Backfill
from scheduler_advisor.engine.reference_world import FULL, Job, Placed, Space, place

if TYPE_CHECKING:
    from scheduler_advisor.engine.reference import World


def holding_pass(world: World, queue: list[Job]) -> None:
    """Each job in order takes what fits; a job that has all its tasks begins to work."""
    depth, cap = world.policy.backfill_depth, world.policy.backfill_max_limit_s
    behind_head: int | None = None
    for job in queue:
        if behind_head is not None:
            behind_head += 1
        if world.held_back(job):
            continue
        if behind_head is not None:
            if world.policy.backfill is Backfill.NONE or (depth and behind_head > depth):
                break
            if cap and job.limit > cap:
                continue
        if take_more(world, job):
            begin(world, job)
        elif behind_head is None:
            behind_head = 0


def take_more(world: World, job: Job) -> bool:
    """Takes task after task until one does not fit; True when the job has them all."""
    while len(job.placed) < len(job.needs):
        need = job.needs[len(job.placed)]
        free = sum(sum(space.gpus) for space in world.up().values())
        size = need.gpus * FULL + need.milli
        if free - size < world.cluster.headroom_gpus * FULL:
            return False
        spaces = world.usable(job, world.now)
        if job.distinct:
            used = {node for node, _ in job.placed}
            spaces = {node: space for node, space in spaces.items() if node not in used}
        placed = place(job, spaces, world.policy, needs=[need], first=len(job.placed))
        if placed is None:
            return False
        job.placed = [*job.placed, *placed]
        job.since.append(world.now)
        world.holders.setdefault(job.index, world.now)
    return True


def begin(world: World, job: Job) -> None:
    world.holding += held_so_far(world, job.index)
    world.holders.pop(job.index, None)
    job.since.clear()
    world.start(job, job.placed)


def release(world: World, index: int) -> None:
    """The job gives back all that it holds and waits again."""
    job = world.all[index]
    world.holding += held_so_far(world, index)
    for node, held in job.placed:
        world.spaces[node].add(held, +1)
    job.placed = []
    job.since.clear()
    del world.holders[index]


def held_so_far(world: World, index: int) -> int:
    """Milli-GPU-seconds that the job has held without working."""
    job = world.all[index]
    return sum(
        sum(held.gpus.values()) * (world.now - since)
        for (_, held), since in zip(job.placed, job.since, strict=True)
    )


def detect(world: World) -> None:
    """A deadlock: jobs hold, and not one of them could be completed if all running jobs ended."""
    stuck = bool(world.holders) and not any(
        _could_complete(world, world.all[index]) for index in world.holders
    )
    if stuck and not world.deadlocked:
        gpus = sum(
            sum(held.gpus.values()) for index in world.holders for _, held in _placed(world, index)
        )
        world.deadlocks.append((world.now, len(world.holders), gpus))
    world.deadlocked = stuck


def _placed(world: World, index: int) -> Placed:
    return world.all[index].placed


def _could_complete(world: World, job: Job) -> bool:
    spaces: dict[int, Space] = {node: space.copy() for node, space in world.up().items()}
    for run in world.running:
        for node, held in run.placed:
            if node in spaces:
                spaces[node].add(held, +1)
    used = {node for node, _ in job.placed} if job.distinct else set()
    spaces = {node: space for node, space in spaces.items() if node not in used}
    return place(job, spaces, world.policy, needs=job.needs[len(job.placed) :]) is not None
