"""One scheduling pass of the reference: in order, with or without backfill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scheduler_advisor.engine.policy import Backfill, Preemption
from scheduler_advisor.engine.reference_holding import detect, holding_pass
from scheduler_advisor.engine.reference_plan import compress, conservative_pass
from scheduler_advisor.engine.reference_world import (
    FULL,
    Guarding,
    Held,
    Job,
    Need,
    Space,
    place,
    put_back,
)

if TYPE_CHECKING:
    from scheduler_advisor.engine.reference import Running, World

__all__ = ["compress", "run_pass"]


def run_pass(world: World) -> None:
    """One pass over each set of nodes that jobs compete for."""
    for component in sorted({world.component[job.index] for job in world.queue}):
        queue = sorted(
            (job for job in world.queue if world.component[job.index] == component),
            key=lambda job: job.key,
        )
        if not world.policy.gang:
            holding_pass(world, queue)
        elif world.policy.backfill in (Backfill.CONSERVATIVE, Backfill.CONSERVATIVE_COMPRESS):
            conservative_pass(world, queue)
        else:
            _ordered_pass(world, queue)
    if not world.policy.gang:
        detect(world)


def _ordered_pass(world: World, queue: list[Job]) -> None:
    for at, job in enumerate(queue):
        if world.held_back(job) or try_start(world, job):
            continue
        if world.policy.preemption is Preemption.PRIORITY and _preempt_for(world, job):
            continue
        _backfill(world, job, queue[at + 1 :])
        return


def try_start(world: World, job: Job, safe: Guarding | None = None) -> bool:
    """Starts the job if its tasks fit now."""
    if not world.headroom_left(job):
        return False
    spaces = world.usable(job, world.now)
    placed = put_back(job, spaces) if job.before and safe is None else None
    placed = placed or place(job, spaces, world.policy, safe=safe)
    if placed is None:
        return False
    world.start(job, placed)
    return True


def _backfill(world: World, head: Job, behind: list[Job]) -> None:
    policy = world.policy
    if policy.backfill is Backfill.NONE:
        return
    if policy.backfill_depth:
        behind = behind[: policy.backfill_depth]
    shadow = shadow_of(world, head) if policy.backfill is Backfill.EASY else None
    for job in behind:
        if world.held_back(job):
            continue
        if policy.backfill_max_limit_s and job.limit > policy.backfill_max_limit_s:
            continue
        if shadow is None or world.believed(job) <= shadow.at:
            try_start(world, job)
        elif shadow.room_for(world, job):
            guard = Guard(world, shadow, {})
            if try_start(world, job, guard):
                for node, held in job.placed:
                    shadow.lose(node, held)


@dataclass
class Shadow:
    """The first instant at which the head fits if running jobs end as believed, and the nodes as
    they will be then."""

    at: float
    head: Job
    usable: set[int]
    spaces: dict[int, Space]
    free_milli: int

    def count(self, need: Need) -> int:
        return sum(self._on(self.spaces[node], need) for node in self.usable)

    def _on(self, space: Space, need: Need) -> int:
        return min(space.count(need), 1) if self.head.distinct else space.count(need)

    def enough(self) -> bool:
        main = [need for need in self.head.needs if not need.rest]
        rest = [need for need in self.head.needs if need.rest]
        if main and self.count(main[0]) < len(main):
            return False
        return not rest or self.count(rest[0]) >= len(main) + 1

    def lose(self, node: int, held: Held) -> None:
        self.spaces[node].add(held, -1)
        self.free_milli -= sum(held.gpus.values())

    def room_for(self, world: World, job: Job) -> bool:
        """Would the headroom still be kept beside head and job?"""
        asked = sum(need.gpus * FULL + need.milli for need in (*self.head.needs, *job.needs))
        return self.free_milli - asked >= world.cluster.headroom_gpus * FULL


def shadow_of(world: World, head: Job) -> Shadow:
    """Releases running jobs by believed end until the head fits; all of one instant together."""
    spaces = {node: space.copy() for node, space in world.spaces.items()}
    for at in sorted({run.believed for run in world.running}):
        for run in world.running:
            if run.believed == at:
                for node, held in run.placed:
                    spaces[node].add(held, +1)
        free = sum(sum(spaces[node].gpus) for node in world.up())
        shadow = Shadow(at, head, set(world.usable(head, at)), spaces, free)
        size = sum(need.gpus * FULL + need.milli for need in head.needs)
        if shadow.enough() and free - size >= world.cluster.headroom_gpus * FULL:
            return shadow
    return Shadow(float("inf"), head, set(), spaces, 0)


@dataclass
class Guard:
    """Refuses nodes on which a job that outlasts the shadow would delay the head."""

    world: World
    shadow: Shadow
    taken: dict[int, list[Held]]

    def __call__(self, node: int, need: Need, gpu: int | None) -> bool:
        return self._harmless(node, self.world.spaces[node].copy().take(need, gpu))

    def took(self, node: int, held: Held) -> None:
        self.taken.setdefault(node, []).append(held)

    def _harmless(self, node: int, held: Held) -> bool:
        trial = Shadow(
            self.shadow.at,
            self.shadow.head,
            self.shadow.usable,
            {at: space.copy() for at, space in self.shadow.spaces.items()},
            self.shadow.free_milli,
        )
        for at, helds in self.taken.items():
            for one in helds:
                trial.lose(at, one)
        trial.lose(node, held)
        return trial.enough()


def _preempt_for(world: World, job: Job) -> bool:
    """Stops preemptible jobs of lower priority, lowest first and youngest first, until the job
    fits; gives back those that were not needed, last taken first; starts the job."""
    mine = world.jobs.priority[job.index]
    victims: list[Running] = sorted(
        (
            run
            for run in world.running
            if world.jobs.preemptible[run.job.index]
            and world.jobs.priority[run.job.index] < mine
            and world.component[run.job.index] == world.component[job.index]
        ),
        key=lambda run: (world.jobs.priority[run.job.index], -run.start, -run.job.index),
    )
    chosen: list[Running] = []
    for run in victims:
        chosen.append(run)
        if _fits_without(world, job, chosen):
            break
    else:
        return False
    for run in list(reversed(chosen)):
        fewer = [one for one in chosen if one is not run]
        if _fits_without(world, job, fewer):
            chosen = fewer
    for run in chosen:
        world.preempted[run.job.index] += 1
        world.interrupt(run)
    return try_start(world, job)


def _fits_without(world: World, job: Job, gone: list[Running]) -> bool:
    for run in gone:
        for node, held in run.placed:
            world.spaces[node].add(held, +1)
    placed = None
    if world.headroom_left(job):
        placed = place(job, world.usable(job, world.now), world.policy)
    for node, held in placed or []:
        world.spaces[node].add(held, +1)
    for run in gone:
        for node, held in run.placed:
            world.spaces[node].add(held, -1)
    return placed is not None
