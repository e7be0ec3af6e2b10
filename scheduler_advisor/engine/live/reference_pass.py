"""One scheduling pass of the general driver, told slowly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scheduler_advisor.engine.live.reference_tree import Node, entitlement, share_out
from scheduler_advisor.engine.live.reference_victims import make_room
from scheduler_advisor.engine.live.settings import Entitlement, Reach, Reclaim
from scheduler_advisor.engine.policy import Backfill, Order, Preemption
from scheduler_advisor.engine.reference_passes import Guard, Shadow
from scheduler_advisor.engine.reference_world import Held, Job, Placed, Space, place, put_back

if TYPE_CHECKING:
    from scheduler_advisor.engine.live.reference import LiveWorld

BY_QUEUE = (Order.FAIR_SHARE, Order.DRF)
MOST_PLANS = 100


@dataclass
class Pass:
    """What one pass over one set of competing jobs remembers."""

    lines: dict[str | None, list[Job]]
    head: Job | None = None
    shadow: Shadow | None = None
    blocked_leaves: set[str] = field(default_factory=set)
    examined: int = 0


def run_pass(world: LiveWorld) -> None:
    """One pass over each set of nodes that jobs compete for; those stopped queue at its end."""
    world.budget_out = False
    world.blocked = False
    fair = world.policy.fair.entitlement, world.policy.quota.reclaim_to
    if Entitlement.TWO_STEP in fair:
        share_out(
            world.nodes[None],
            1000 * world.cluster.total_gpus,
            lambda node: world.held(node) + world.waiting_milli(node),
        )
    for component in sorted({world.component[job.index] for job in world.queue}):
        _part_pass(world, component)
    for job in world.stopped:
        world.enqueue(job)
    world.stopped.clear()


def _part_pass(world: LiveWorld, component: int) -> None:
    waiting = [job for job in world.queue if world.component[job.index] == component]
    waiting.sort(key=world.job_key)
    lines: dict[str | None, list[Job]] = {}
    for job in waiting:
        name = world.leaf[job.index] if world.policy.order in BY_QUEUE else None
        lines.setdefault(name, []).append(job)
    this = Pass(lines)
    world.plans.clear()
    while (line := _pick(world, this)) is not None:
        job = line.pop(0)
        if this.head is not None and not _go_on(world, this):
            break
        if not _examine(world, this, job):
            break
    world.plans.clear()


def _go_on(world: LiveWorld, this: Pass) -> bool:
    """May anything behind the blocked job be examined?"""
    policy = world.policy
    if policy.backfill is Backfill.NONE and not policy.quota.strict:
        return False
    if policy.backfill_interval_s and world.now % policy.backfill_interval_s:
        return False
    if policy.backfill_depth and this.examined >= policy.backfill_depth:
        return False
    this.examined += 1
    return True


def _pick(world: LiveWorld, this: Pass) -> list[Job] | None:
    """The line whose turn it is: down the tree, the least served queue first."""
    if world.policy.order not in BY_QUEUE:
        return this.lines.get(None) or None

    def filled(node: Node) -> bool:
        if not node.children:
            return bool(this.lines.get(node.name))
        return any(filled(child) for child in node.children)

    node = world.nodes[None]
    if not filled(node):
        return None
    while node.children:
        able = [child for child in node.children if filled(child)]
        node = min(able, key=lambda child: (_share(world, child), child.name))
    return this.lines[node.name]


def _share(world: LiveWorld, node: Node) -> float:
    """Usage over entitlement."""
    policy = world.policy
    if policy.order is Order.DRF:
        totals = (
            (world.held(node), 1000 * world.cluster.total_gpus),
            (world.held_of(node, "cpu"), int(world.cluster.cpu_milli.sum())),
            (world.held_of(node, "mem"), int(world.cluster.mem_mib.sum())),
        )
        most = max((float(held) / float(total) for held, total in totals if total), default=0.0)
        return most / float(entitlement(node, Entitlement.WEIGHT))
    used = world.used(node) if policy.fair.half_life_s else world.held(node)
    return float(used) / float(entitlement(node, policy.fair.entitlement))


def _examine(world: LiveWorld, this: Pass, job: Job) -> bool:
    """One job's turn; False ends the pass."""
    policy, leaf = world.policy, world.leaf[job.index]
    most = policy.backfill_max_limit_s
    too_long = this.head is not None and most and job.limit > most
    waits = policy.quota.strict and leaf in this.blocked_leaves
    if too_long or waits or world.held_back(job):
        return True
    if job.index in world.pinned:
        _resume(world, this, job)
        return True
    admitted = world.admits(job)
    if admitted and _start(world, this, job):
        return True
    if _stop_others(world, this, job):
        if this.shadow is not None and this.head is not None:
            this.shadow = shadow_of(world, this.head)
        return True
    this.blocked_leaves.add(leaf)
    if not admitted:
        return True
    world.blocked = True
    if policy.backfill_whole_nodes and len(world.plans) < MOST_PLANS:
        _plan(world, job)
    if this.head is None:
        this.head = job
        if policy.backfill is Backfill.EASY and not policy.backfill_whole_nodes:
            this.shadow = shadow_of(world, job)
    return True


def _stop_others(world: LiveWorld, this: Pass, job: Job) -> bool:
    policy, leaf = world.policy, world.leaf[job.index]
    own = policy.eviction.reach is Reach.QUEUE
    first = leaf not in this.blocked_leaves
    by_rank = policy.preemption is Preemption.PRIORITY and (first if own else this.head is None)
    reclaim = policy.quota.reclaim is not Reclaim.NONE and first
    return (by_rank or reclaim) and make_room(world, job, by_rank, reclaim)


def _start(world: LiveWorld, this: Pass, job: Job) -> bool:
    """Starts the job where it fits without breaking the promise to the head."""
    if not world.headroom_left(job):
        return False
    guard, shadow = None, this.shadow
    if shadow is not None and world.believed(job) > shadow.at:
        if not shadow.room_for(world, job):
            return False
        guard = Guard(world, shadow, {})
    spaces = world.usable(job, world.now)
    placed = put_back(job, spaces) if job.before and guard is None else None
    placed = placed or place(job, spaces, world.policy, safe=guard)
    if placed is None:
        return False
    world.start(job, placed)
    if guard is not None and shadow is not None:
        for node, held in placed:
            shadow.lose(node, held)
    return True


def _resume(world: LiveWorld, this: Pass, job: Job) -> None:
    """A suspended job goes on where it is, if its GPUs and CPUs are free; it blocks nobody."""
    placed = world.pinned[job.index]
    if this.shadow is not None and world.believed(job) > this.shadow.at:
        return
    if not world.admits(job) or not world.headroom_left(job):
        return
    up = world.usable(job, world.now)
    taken: Placed = []
    for node, held in placed:
        space = world.spaces[node]
        room = node in up and len(held.gpus) <= space.whole and held.cpu <= space.cpu
        if not room:
            break
        gpus = [at for at, left in enumerate(space.gpus) if left == 1000][: len(held.gpus)]
        part = Held(dict.fromkeys(gpus, 1000), held.cpu, 0)
        space.add(part, -1)
        taken.append((node, part))
    if len(taken) < len(placed):
        for node, part in taken:
            world.spaces[node].add(part, +1)
        return
    whole = [
        (node, Held(part.gpus, part.cpu, held.mem))
        for (node, part), (_, held) in zip(taken, placed, strict=True)
    ]
    world.start(job, whole)
    if this.shadow is not None:
        for node, held in whole:  # its memory, kept so far, will have been given back
            this.shadow.spaces[node].mem += held.mem


def shadow_of(world: LiveWorld, head: Job) -> Shadow:
    """When the head fits if all that runs, and all whose room is made, ends as believed."""
    spaces = {node: space.copy() for node, space in world.spaces.items()}
    for at in _believed(world):
        _release(world, spaces, at)
        free = sum(sum(spaces[node].gpus) for node in world.up())
        shadow = Shadow(at, head, set(world.usable(head, at)), spaces, free)
        if shadow.enough() and free - world.size(head) >= world.cluster.headroom_gpus * 1000:
            return shadow
    return Shadow(float("inf"), head, set(), spaces, 0)


def _believed(world: LiveWorld) -> list[int]:
    ends = {run.believed for run in world.running if not world.told_to_leave(run)}
    return sorted(ends | {claim.believed for claim in world.claims})


def _release(world: LiveWorld, spaces: dict[int, Space], at: int) -> None:
    for run in world.running:
        if not world.told_to_leave(run) and run.believed == at:
            for node, held in run.placed:
                spaces[node].add(held, +1)
    for claim in world.claims:
        if claim.believed == at:
            for node, held in claim.placed:
                space = spaces[node]
                space.cpu += held.cpu
                space.mem += held.mem
                # Which GPUs they will be does not matter: nobody shares GPUs here.
                taken = [i for i, left in enumerate(space.gpus) if left == 0][: len(held.gpus)]
                for gpu in taken:
                    space.gpus[gpu] = 1000
                space.tasks -= 1


def _plan(world: LiveWorld, job: Job) -> None:
    """Reserves whole nodes for the job from the first instant at which it will fit."""
    spaces = {node: space.copy() for node, space in world.spaces.items()}
    ends = _believed(world)
    instants = sorted({world.now, *ends, *(until for _, _, until in world.plans)})
    released: set[int] = set()
    for at in instants:
        for end in ends:
            if end <= at and end not in released:
                _release(world, spaces, end)
                released.add(end)
        nodes = _whole_nodes(world, job, spaces, at)
        if nodes is not None:
            world.plans.append((nodes, at, at + job.limit))
            return


def _whole_nodes(world: LiveWorld, job: Job, spaces: dict[int, Space], at: int) -> set[int] | None:
    """The nodes that would take the job's tasks at `at`, fewest free GPUs first."""
    usable = sorted(world.usable(job, at), key=lambda node: (spaces[node].whole, node))
    left = list(job.needs)
    chosen: set[int] = set()
    for node in usable:
        space, took = spaces[node].copy(), False
        while left and space.fits(left[0]) and not (job.distinct and took):
            space.take(left.pop(0))
            took = True
        if took:
            chosen.add(node)
        if not left:
            return chosen
    return None
