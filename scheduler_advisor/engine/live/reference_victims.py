"""Whom the general driver stops, told slowly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler_advisor.engine.live.reference_leaving import let_go, settle
from scheduler_advisor.engine.live.reference_tree import Node
from scheduler_advisor.engine.live.settings import Reach, Reclaim, Stop, Victims
from scheduler_advisor.engine.reference_world import Held, Job, Placed, place

if TYPE_CHECKING:
    from scheduler_advisor.engine.live.reference import LiveWorld
    from scheduler_advisor.engine.reference import Running

HOUR_S = 3600


def make_room(world: LiveWorld, job: Job, by_rank: bool, reclaim: bool) -> bool:
    """Stops as few jobs as this order of victims needs so that the job can start; it starts at
    once, or when they have left. Victims are lifted off until it fits; then, last one first, each
    goes back if the job fits all the same."""
    from scheduler_advisor.engine.live.reference import Claim

    candidates = _candidates(world, job, by_rank, reclaim)
    lifted: list[Running] = []
    fits = False
    for run, is_reclaim in candidates:
        if is_reclaim and not _above(world, job, run):
            continue
        if not _within_budget(world, run, lifted):
            world.budget_out = True
            continue
        _lift(world, run, +1)
        lifted.append(run)
        if _fits(world, job) is not None:
            fits = True
            break
    if not fits:
        for run in reversed(lifted):
            _lift(world, run, -1)
        return False
    for run in list(reversed(lifted)):
        _lift(world, run, -1)
        if _fits(world, job) is not None:
            lifted.remove(run)
        else:
            _lift(world, run, +1)
    if not lifted:  # it fits as it is: what holds it is the promise to the head
        return False
    placed = _fits(world, job)
    assert placed is not None
    for run in lifted:
        _lift(world, run, -1)
    _note(world, lifted)
    ranked = {run.job.index for run, is_reclaim in candidates if not is_reclaim}
    world.by[job.index] = 1 if any(run.job.index in ranked for run in lifted) else 2
    world.asked_at[job.index] = world.now
    world.queue.remove(job)
    part = world.policy.eviction
    if not part.takes_time:
        _at_once(world, job, lifted)
        return True
    believed = world.now + part.grace_s + max(job.limit, world._wall(job))
    extras = _extras(world, job, placed, lifted)
    for node, held in extras:
        world.spaces[node].add(held, -1)
    claim = Claim(job, placed, lifted, extras, believed, len(lifted))
    world.claims.append(claim)
    for run in lifted:
        world.evicted[run.job.index] = claim
        world.natural[run.job.index] = run.end
        run.end = min(run.end, world.now + part.grace_s)
    world.count()
    return True


def _at_once(world: LiveWorld, job: Job, victims: list[Running]) -> None:
    mode = world.policy.eviction.mode
    for run in victims:
        settle(world, run, mode)
        if mode is Stop.CHECKPOINT:
            world.stake.pop(run.job.index, None)  # written at once
        world.running.remove(run)
        let_go(world, run)
        run.job.placed = []
        world.stopped.append(run.job)
    again = place(job, world.usable(job, world.now), world.policy)
    assert again is not None
    world.queue.append(job)
    world.start(job, again)


def _candidates(
    world: LiveWorld, job: Job, by_rank: bool, reclaim: bool
) -> list[tuple[Running, bool]]:
    """Running jobs that may be stopped for this one, with whether by reclaim, in order."""
    part = world.policy.eviction
    found = []
    for run in world.running:
        other = run.job
        if world.told_to_leave(run) or world.component[other.index] != world.component[job.index]:
            continue
        if not world.stoppable(other) or world.now - run.start < part.min_run_s:
            continue
        if part.max_per_job and world.preempted[other.index] >= part.max_per_job:
            continue
        same = world.leaf[other.index] == world.leaf[job.index]
        ranked = by_rank and world.standing(other) < world.standing(job)
        if part.reach is Reach.QUEUE:
            ranked = ranked and same
        mine = reclaim and not same and _within(world, job, other)
        if mine or ranked:
            found.append((run, mine and not ranked))
    return sorted(found, key=lambda pair: (not pair[1], *_order(world, pair[0])))


def _order(world: LiveWorld, run: Running) -> tuple[int, ...]:
    kind = world.policy.eviction.victims
    ties = (-run.start, -run.job.index)
    if kind is Victims.YOUNGEST:
        return ties
    if kind is Victims.LEAST_LOST:
        return (_lost(world, run), world.standing(run.job), *ties)
    return (world.standing(run.job), *ties)


def _lost(world: LiveWorld, run: Running) -> int:
    """GPU-milliseconds that would be lost if the job were stopped now."""
    mode, job = world.policy.eviction.mode, run.job
    if mode in (Stop.CHECKPOINT, Stop.SUSPEND):
        return 0
    every, write, restore, writes = world._costs(job)
    worked = max(0, world.now - run.start - restore)
    saved, done = 0, worked
    if every:
        cycles = min(writes, worked // (every + write))
        saved = cycles * every
        since = worked - cycles * (every + write)
        done = saved + (since if cycles == writes else min(since, every))
    lost = done + job.run - job.left if mode is Stop.SCRATCH else done - saved
    return lost * world.size(job)


def _parting(world: LiveWorld, job: Job, other: Job) -> tuple[Node, Node]:
    """The queues of the two jobs at the level at which their paths part."""
    mine, theirs = world.node(job).path(), world.node(other).path()
    for one, two in zip(mine, theirs, strict=False):
        if one is not two:
            return one, two
    raise AssertionError("one queue")


def _within(world: LiveWorld, job: Job, other: Job) -> bool:
    """Would the job's queue stay within its entitlement?"""
    mine, _ = _parting(world, job, other)
    return world.held(mine) + world.size(job) <= _entitled(world, mine)


def _above(world: LiveWorld, job: Job, run: Running) -> bool:
    """Is the victim's queue above its entitlement, and by how much must it be?"""
    _, theirs = _parting(world, job, run.job)
    held = world.held(theirs)
    if world.policy.quota.reclaim is Reclaim.STRICT:
        held -= world.size(run.job)
        return held >= _entitled(world, theirs)
    return held > _entitled(world, theirs)


def _entitled(world: LiveWorld, node: Node) -> int:
    kind = world.policy.quota.reclaim_to
    return node.guarantee if kind == "guarantee" else node.fair


def _within_budget(world: LiveWorld, run: Running, lifted: list[Running]) -> bool:
    part, hour = world.policy.eviction, world.now // HOUR_S
    so_far = world.hour_count if world.hour == hour else 0
    if part.max_per_hour and so_far + len(lifted) + 1 > part.max_per_hour:
        return False
    node = world.node(run.job)
    gone = node.evicted if node.hour == hour else 0
    gone += sum(world.size(one.job) for one in lifted if world.node(one.job) is node)
    most = part.max_team_gpus_per_hour * 1000
    return not most or gone + world.size(run.job) <= most


def _note(world: LiveWorld, victims: list[Running]) -> None:
    hour = world.now // HOUR_S
    if world.hour != hour:
        world.hour, world.hour_count = hour, 0
    world.hour_count += len(victims)
    for run in victims:
        world.preempted[run.job.index] += 1
        node = world.node(run.job)
        if node.hour != hour:
            node.hour, node.evicted = hour, 0
        node.evicted += world.size(run.job)


def _lift(world: LiveWorld, run: Running, sign: int) -> None:
    """Takes the running job off its nodes and off the counts in thought (+1), or puts it back."""
    keeps_mem = world.policy.eviction.mode is Stop.SUSPEND
    for node, held in run.placed:
        world.spaces[node].add(Held(held.gpus, held.cpu, 0 if keeps_mem else held.mem), sign)
    if sign > 0:
        world.running.remove(run)
    else:
        world.running.append(run)


def _fits(world: LiveWorld, job: Job) -> Placed | None:
    """Where the job would go now; nothing changes."""
    if not world.admits(job) or not world.headroom_left(job):
        return None
    placed = place(job, world.usable(job, world.now), world.policy)
    for node, held in placed or []:
        world.spaces[node].add(held, +1)
    return placed


def _extras(
    world: LiveWorld, job: Job, placed: Placed, victims: list[Running]
) -> list[tuple[int, Held]]:
    """What the job needs on its nodes beyond what its victims hold there: kept for it from now."""
    extras = []
    for node in sorted({node for node, _ in placed}):
        space = world.spaces[node]
        need = [held for at, held in placed if at == node]
        theirs = [held for run in victims for at, held in run.placed if at == node]
        suspended = world.policy.eviction.mode is Stop.SUSPEND
        gpus = max(0, sum(len(h.gpus) for h in need) - sum(len(h.gpus) for h in theirs))
        cpu = max(0, sum(h.cpu for h in need) - sum(h.cpu for h in theirs))
        freed = 0 if suspended else sum(h.mem for h in theirs)
        mem = max(0, sum(h.mem for h in need) - freed)
        free = [at for at, left in enumerate(space.gpus) if left == 1000][:gpus]
        extras.append((node, Held(dict.fromkeys(free, 1000), cpu, mem)))
    return extras
