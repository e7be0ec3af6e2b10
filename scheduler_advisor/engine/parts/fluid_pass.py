"""A pass in the parts' driver where queues, quotas, promises or preemption decide: whose turn it
is, who starts, who is moved or stopped for it. docs/policies.md says what each rule means."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scheduler_advisor.engine.live.reference_tree import Node
from scheduler_advisor.engine.live.settings import Reach
from scheduler_advisor.engine.parts.fluid_consolidate import consolidate
from scheduler_advisor.engine.parts.fluid_resize import start_smaller
from scheduler_advisor.engine.parts.fluid_shadow import Promise, promise_to
from scheduler_advisor.engine.parts.mig import WHOLE
from scheduler_advisor.engine.parts.settings import Elastic
from scheduler_advisor.engine.policy import Backfill

if TYPE_CHECKING:
    from scheduler_advisor.engine.parts.fluid import Fluid


@dataclass
class Pass:
    """What a pass over one set of competing jobs remembers. `failed`: shapes that found no place
    since somebody last started or was stopped."""

    lines: dict[Node | None, deque[int]]
    head: int | None = None
    promise: Promise | None = None
    blocked: set[Node] = field(default_factory=set)
    examined: int = 0
    failed: set[object] = field(default_factory=set)


def general_pass(fluid: Fluid) -> None:
    """One pass over each set of nodes that jobs compete for; those stopped queue at its end."""
    fluid.passes += 1
    fluid.stops.budget_out = False
    fluid.queues.share_out()
    for part in sorted({fluid.component[job] for job in fluid.queue}):
        _part_pass(fluid, part)
    for job in fluid.stopped:
        fluid.enqueue(job)
    fluid.stopped.clear()


def _part_pass(fluid: Fluid, part: int) -> None:
    lines: dict[Node | None, deque[int]] = {}
    by_queue = fluid.queues.by_queue
    for job in fluid.queue:
        if fluid.component[job] == part:
            lines.setdefault(fluid.queues.leaf(job) if by_queue else None, deque()).append(job)
    this = Pass(lines)
    while (line := _pick(fluid, this)) is not None:
        job = line.popleft()
        if this.head is not None and not _goes_on(fluid, this):
            return
        fluid.examined += 1
        _examine(fluid, this, job)


def _pick(fluid: Fluid, this: Pass) -> deque[int] | None:
    if not fluid.queues.by_queue:
        return this.lines.get(None) or None
    leaf = fluid.queues.next_leaf(lambda node: bool(this.lines.get(node)), fluid.now)
    return None if leaf is None else this.lines[leaf]


def _goes_on(fluid: Fluid, this: Pass) -> bool:
    """May anything behind the blocked job be examined?"""
    policy = fluid.policy
    if policy.backfill is Backfill.NONE and not policy.quota.strict:
        return False
    if policy.backfill_depth and this.examined >= policy.backfill_depth:
        return False
    this.examined += 1
    return True


def _examine(fluid: Fluid, this: Pass, job: int) -> None:
    """One job's turn."""
    policy, queues = fluid.policy, fluid.queues
    most, leaf = policy.backfill_max_limit_s, queues.leaf(job)
    if this.head is not None and most and fluid.jobs.limit[job] > most:
        return
    if (policy.quota.strict and leaf in this.blocked) or queues.over_a_limit(job):
        return
    if fluid.windows.held_back(job, fluid.now):
        return
    admitted = queues.admits(job, queues.size[job], fluid.free_milli())
    if admitted and _start(fluid, this, job):
        this.failed.clear()
        return
    first = leaf not in this.blocked
    if (admitted and first and consolidate(fluid, job)) or _stop_others(fluid, this, job, first):
        fluid.dequeue(job)
        this.failed.clear()
        if this.promise is not None and this.head is not None:
            this.promise = promise_to(fluid, fluid.asks[this.head], queues.size[this.head])
        return
    this.blocked.add(leaf)
    if admitted and this.head is None:
        this.head = job
        if policy.backfill is Backfill.EASY:
            this.promise = promise_to(fluid, fluid.asks[job], queues.size[job])


def _stop_others(fluid: Fluid, this: Pass, job: int, first: bool) -> bool:
    stops = fluid.stops
    own = fluid.policy.eviction.reach is Reach.QUEUE
    by_rank = stops.by_rank and (first if own else this.head is None)
    reclaim = stops.reclaims and first
    return (by_rank or reclaim) and stops.make_room(job, by_rank, reclaim)


def _start(fluid: Fluid, this: Pass, job: int) -> bool:
    """Starts the job where it fits without breaking the promise to the head."""
    size, ask = fluid.queues.size[job], fluid.asks[job]
    elastic = fluid.policy.elastic.kind is Elastic.RESIZE  # others may shrink for it
    if not elastic and not fluid.headroom_left(size):
        return False
    guard, promise = None, this.promise
    if promise is not None and fluid.now + fluid.believed_s(job) > promise.at:
        beside = size + fluid.queues.size[promise.head.job]
        if promise.free - beside < fluid.cluster.headroom_gpus * WHOLE:
            return False
        guard = promise
    shape = (fluid.shape(job), guard is None)
    if shape in this.failed:
        return False
    tasks = ask.tasks
    pieces = fluid.find(ask, tasks, guard)
    if pieces is None and guard is None and elastic:
        found = start_smaller(fluid, ask, this.head is None)
        tasks, pieces = found if found is not None else (tasks, None)
    if pieces is None:
        this.failed.add(shape)
        return False
    if guard is not None:
        guard.free -= sum(fluid.speeds.held_milli(ask, piece) for piece in pieces)
    fluid.begin(ask, tasks, pieces)
    fluid.dequeue(job)
    return True
