"""The gap that could be filled: waiting GPUs that jobs further back could use without delaying the
head.

Time limits are all that a scheduler knows of the future, so they decide: a job may fill if it ends
by
the head's shadow time, or if the head still fits at that time beside it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analytics.ledger.kernel.compiled import leaf
from analytics.ledger.kernel.state import (
    C_CPU_REQUEST,
    C_FILLABLE,
    C_GANG,
    C_MEM_REQUEST,
    C_SHAPE,
    C_TOPOLOGY,
    Array,
    Claims,
    Jobs,
    Nodes,
    Pools,
    View,
)
from analytics.ledger.kernel.walk import ALL, fits, room_for

NEVER = 2**62
# Typed, since numba compiles a function anew for every plain number that it is given.
TAKE: Array = np.int64(1)
GIVE_BACK: Array = np.int64(-1)


class Running(NamedTuple):
    """What runs hold, in the order of their estimated ends; ``live`` = now."""

    pool: Array
    gpus: Array
    node: Array
    cpu: Array
    mem: Array
    ends: Array
    live: Array


class Later(NamedTuple):
    """A copy of the cluster's free resources at some later time."""

    nodes: Nodes
    room: View


class FillScratch(NamedTuple):
    """Room to work in: two copies of the cluster, and three counts per pool."""

    here: Later
    later: Later
    waiting: Array
    placed: Array
    filled: Array


@leaf
def _waits(code: int) -> bool:
    return bool(
        code == C_GANG
        or code == C_SHAPE
        or code == C_TOPOLOGY
        or code == C_CPU_REQUEST
        or code == C_MEM_REQUEST
    )


@leaf
def _reset(later: Later, nodes: Nodes, left: Array) -> None:
    for m in range(nodes.cpu_used.shape[0]):
        later.nodes.cpu_used[m] = nodes.cpu_used[m]
        later.nodes.mem_used[m] = nodes.mem_used[m]
    for p in range(left.shape[0]):
        later.room.left[p] = left[p]


@leaf
def _after(later: Later, nodes: Nodes, avail: Array, running: Running, until: int) -> None:
    """Free resources once every run with an estimated end of at most ``until`` has gone."""
    _reset(later, nodes, avail)
    for r in range(running.pool.shape[0]):
        if running.ends[r] > until:
            break
        if running.live[r]:
            m = running.node[r]
            later.nodes.cpu_used[m] -= running.cpu[r]
            later.nodes.mem_used[m] -= running.mem[r]
            if running.gpus[r] > 0 and nodes.failed[m] == 0 and nodes.drained[m] == 0:
                later.room.left[running.pool[r]] += running.gpus[r]


@leaf
def _head_fits(later: Later, pools: Pools, jobs: Jobs, head: int) -> bool:
    size = pools.node.shape[0]
    return fits(later.nodes, pools, jobs, head, later.room, size, ALL)


@leaf
def shadow(
    later: Later, nodes: Nodes, pools: Pools, jobs: Jobs, head: int, avail: Array, running: Running
) -> int:
    """The first time at which the head fits if every run uses its limit, with ``later`` as it is
    then; NEVER = limits do not tell."""
    lo, hi = 0, 0
    for r in range(running.ends.shape[0]):
        if running.ends[r] < NEVER:
            hi = r + 1
    if hi == 0:
        return NEVER
    hi -= 1
    _after(later, nodes, avail, running, running.ends[hi])
    if not _head_fits(later, pools, jobs, head):
        return NEVER
    while lo < hi:
        mid = (lo + hi) // 2
        _after(later, nodes, avail, running, running.ends[mid])
        if _head_fits(later, pools, jobs, head):
            hi = mid
        else:
            lo = mid + 1
    _after(later, nodes, avail, running, running.ends[lo])
    return int(running.ends[lo])


@leaf
def _place(now: Later, pools: Pools, jobs: Jobs, j: int, placed: Array) -> bool:
    """Put job ``j`` on the waiting GPUs, node by node in name order; False where it does not
    fit."""
    size = pools.node.shape[0]
    if not fits(now.nodes, pools, jobs, j, now.room, size, ALL):
        return False
    placed[:] = 0
    full, rest = jobs.full[j], jobs.rest[j]
    for p in range(size):
        m = pools.node[p]
        left = now.room.left[p]
        if left == 0 or not now.room.allowed[jobs.group[j], p]:
            continue
        if not room_for(now.nodes.cpu_total[m], now.nodes.cpu_used[m], jobs.cpu[j]):
            continue
        if not room_for(now.nodes.mem_total[m], now.nodes.mem_used[m], jobs.mem[j]):
            continue
        if full > 0 and left >= jobs.per_node[j]:
            placed[p] = jobs.per_node[j]
            full -= 1
        elif full == 0 and rest > 0 and left >= rest:
            placed[p] = rest
            rest = 0
        if full == 0 and rest == 0:
            return True
    return False


@leaf
def _take(later: Later, jobs: Jobs, node_of: Array, j: int, placed: Array, sign: int) -> None:
    for p in range(placed.shape[0]):
        if placed[p] > 0:
            m = node_of[p]
            later.room.left[p] -= sign * placed[p]
            later.nodes.cpu_used[m] += sign * jobs.cpu[j]
            later.nodes.mem_used[m] += sign * jobs.mem[j]


@leaf
def _head_of(claims: Claims, queue: tuple[Array, int], waiting: Array) -> int:
    """Count per pool what waits; the first place in the queue that waits for any of it."""
    rank = queue[1]
    for p in range(waiting.shape[0]):
        waiting[p] = 0
        for c in range(claims.n[p]):
            if _waits(claims.code[p, c]):
                waiting[p] += claims.gpus[p, c]
                for q in range(rank):
                    if queue[0][q] == claims.job[p, c]:
                        rank = q
                        break
    return int(rank)


@leaf
def fill(
    nodes: Nodes,
    pools: Pools,
    jobs: Jobs,
    queue: tuple[Array, int],
    avail: Array,
    claims: Claims,
    running: Running,
    now: int,
    scratch: FillScratch,
) -> None:
    """Add the fillable part of what waits to the claims."""
    here, later, waiting = scratch.here, scratch.later, scratch.waiting
    placed, filled = scratch.placed, scratch.filled
    rank = _head_of(claims, queue, waiting)
    if rank + 1 >= queue[1]:
        return
    head = queue[0][rank]
    _reset(here, nodes, waiting)
    filled[:] = 0
    deadline = -1
    for q in range(rank + 1, queue[1]):
        j = queue[0][q]
        if (
            jobs.limited[j] > 0
            or jobs.placeable[j] == 0
            or not _place(here, pools, jobs, j, placed)
        ):
            continue
        if deadline < 0:
            deadline = shadow(later, nodes, pools, jobs, head, avail, running)
            if deadline == NEVER:
                return
        ends = jobs.limit_us[j] > 0 and now + jobs.limit_us[j] <= deadline
        if not ends:
            _take(later, jobs, pools.node, j, placed, TAKE)
            if not _head_fits(later, pools, jobs, head):
                _take(later, jobs, pools.node, j, placed, GIVE_BACK)
                continue
        _take(here, jobs, pools.node, j, placed, TAKE)
        for p in range(filled.shape[0]):
            filled[p] += placed[p]
    for p in range(filled.shape[0]):
        if filled[p] > 0:
            c = claims.n[p]
            claims.code[p, c], claims.gpus[p, c] = C_FILLABLE, filled[p]
            claims.job[p, c], claims.ripe[p, c] = head, 0
            claims.n[p] = c + 1
