"""Jobs that are stopped, told slowly: what they keep, how they leave, and who gets their room.

A job that is told to leave runs on through its grace, then writes its checkpoint if it writes one,
then has left. Once told it goes, even if the job that it leaves for no longer comes.

- A node of a job that runs, is in its grace, or writes, fails: it loses what no finished checkpoint
  holds. If it was leaving it has left; its room stays kept.
- A node on which a job is to run, once its victims have left, fails or is drained: the job queues
  again, what was kept for it is free, victims that have left queue too.
- A node of a suspended job fails: its memory is gone, and with it what it did since its last
  checkpoint; it starts anew, on any node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler_advisor.engine.live.settings import Stop
from scheduler_advisor.engine.reference_world import Held, Job

if TYPE_CHECKING:
    from scheduler_advisor.engine.live.reference import Claim, LiveWorld
    from scheduler_advisor.engine.reference import Running

KIB = 1 << 20  # KiB in a GiB


def settle(world: LiveWorld, run: Running, mode: Stop) -> None:
    """What an attempt that is stopped now has achieved; see preemption.mode."""
    job = run.job
    every, write, restore, writes = world._costs(job)
    worked = max(0, world.now - run.start - restore)
    saved, done = 0, worked
    if every:
        cycles = min(writes, worked // (every + write))
        saved = cycles * every
        since = worked - cycles * (every + write)
        done = saved + (since if cycles == writes else min(since, every))
    at_stake = done - saved + (0 if saved else world.stake.get(job.index, 0))
    world.overhead[job.index] += world.now - run.start - done
    job.ends.append(world.now)
    if mode is Stop.SCRATCH:
        world.lost[job.index] += done + job.run - job.left
        job.left = job.run
        return
    job.left -= done
    world.stake[job.index] = at_stake
    if mode is Stop.REQUEUE:
        lose_stake(world, job)


def lose_stake(world: LiveWorld, job: Job) -> None:
    """What no checkpoint holds is gone."""
    gone = world.stake.pop(job.index, 0)
    world.lost[job.index] += gone
    job.left += gone


def force_out(world: LiveWorld, run: Running) -> None:
    """Grace is over."""
    part = world.policy.eviction
    settle(world, run, part.mode)
    if part.mode is Stop.CHECKPOINT and part.gib_per_gpu:
        world.writers[run.job.index] = world.kib(run.job)
        run.end = 1 << 60
        return
    go(world, run)


def go(world: LiveWorld, run: Running) -> None:
    """A stopped job leaves; if for nobody, it queues again at once."""
    index = run.job.index
    if world.policy.eviction.mode is Stop.CHECKPOINT:
        world.stake.pop(index, None)  # it is written
    if index in world.evicted:
        world.leave(run)
        return
    world.for_nobody.discard(index)
    world.running.remove(run)
    let_go(world, run)
    requeue(world, run)
    world.count()


def write_on(world: LiveWorld) -> None:
    """Those who write share the bandwidth up to now; whoever is done leaves."""
    if world.writers:
        rate = max(1, world.policy.eviction.storage_gib_s * KIB // len(world.writers))
        for index in sorted(world.writers):
            world.writers[index] -= rate * (world.now - world.written_at)
    world.written_at = world.now


def written(world: LiveWorld) -> None:
    for index in sorted(index for index, left in world.writers.items() if left <= 0):
        (run,) = [run for run in world.running if run.job.index == index]
        stop_writing(world, run)
        go(world, run)


def stop_writing(world: LiveWorld, run: Running) -> None:
    """The time that writing took was overhead."""
    index = run.job.index
    del world.writers[index]
    world.overhead[index] += world.now - run.job.ends[-1]
    run.job.ends[-1] = world.now


def write_ends(world: LiveWorld) -> list[int]:
    rate = max(1, world.policy.eviction.storage_gib_s * KIB // max(1, len(world.writers)))
    return [world.written_at + max(0, -(-left // rate)) for left in world.writers.values()]


def resolve(world: LiveWorld) -> None:
    """Those whose victims have all left start; the victims queue again."""
    for claim in sorted(world.claims, key=lambda one: one.job.index):
        if claim.left:
            continue
        _part(world, claim)
        placed = [
            (node, world.spaces[node].take(need))
            for (node, _), need in zip(claim.placed, claim.job.needs, strict=True)
        ]
        world.queue.append(claim.job)
        world.start(claim.job, placed)


def _part(world: LiveWorld, claim: Claim) -> None:
    """The claim is over: what was kept is free, who has left queues, the others go for nobody."""
    world.claims.remove(claim)
    for node, held in claim.extras:
        world.spaces[node].add(held, +1)
    for run in claim.victims:
        del world.evicted[run.job.index]
        if run in world.running:
            world.for_nobody.add(run.job.index)
            continue
        let_go(world, run)
        if run.job.index not in world.ended:
            requeue(world, run)


def let_go(world: LiveWorld, run: Running) -> None:
    """The room of a victim that has left; suspended, it stays in memory."""
    index = run.job.index
    suspended = (
        world.policy.eviction.mode is Stop.SUSPEND
        and index not in world.ended
        and index not in world.fallen
    )
    world.fallen.discard(index)
    for node, held in run.placed:
        world.spaces[node].add(Held(held.gpus, held.cpu, 0 if suspended else held.mem), +1)
    if suspended:
        world.pinned[index] = run.placed


def requeue(world: LiveWorld, run: Running) -> None:
    run.job.placed = []
    world.enqueue(run.job)


def node_gone(world: LiveWorld, node: int, kills: bool) -> None:
    """The node takes no more tasks; if it fails, what is on it is lost."""
    for claim in [one for one in world.claims if any(at == node for at, _ in one.placed)]:
        _part(world, claim)
        world.enqueue(claim.job)
        world.count()
    if not kills:
        return
    hit = [run for run in world.running if any(at == node for at, _ in run.placed)]
    for run in sorted(hit, key=lambda one: one.job.index):
        _strike(world, run)
    if world.policy.eviction.mode is Stop.SUSPEND:
        _forget_memory(world, node)


def _strike(world: LiveWorld, run: Running) -> None:
    """A node of a job that runs, is in its grace, or writes, has failed."""
    index = run.job.index
    if index in world.writers:
        stop_writing(world, run)
        lose_stake(world, run.job)
    else:
        settle(world, run, Stop.REQUEUE)
    leaving = index in world.evicted
    world.leave(run)
    if leaving:
        world.fallen.add(index)
    else:
        requeue(world, run)


def _forget_memory(world: LiveWorld, node: int) -> None:
    """Suspended jobs lose what they kept on the node."""
    for index, placed in list(world.pinned.items()):
        if any(at == node for at, _ in placed):
            del world.pinned[index]
            for at, held in placed:
                world.spaces[at].mem += held.mem
            lose_stake(world, world.all[index])
