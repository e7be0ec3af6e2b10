"""The gap that could be filled: waiting GPUs that jobs further back could use without delaying the
head.

Time limits are all that a scheduler knows of the future, so they decide: a job may fill if it ends
by
the head's shadow time, or if the head still fits at that time beside it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

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
from analytics.ledger.kernel.walk import fits, room_for

NEVER = 2**62


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


@njit(cache=True)
def _waits(code: int) -> bool:
    return bool(
        code == C_GANG
        or code == C_SHAPE
        or code == C_TOPOLOGY
        or code == C_CPU_REQUEST
        or code == C_MEM_REQUEST
    )


@njit(cache=True)
def _copy(nodes: Nodes, view: View, left: Array) -> Later:
    held = Nodes(
        nodes.failed, nodes.drained, nodes.covered, nodes.cpu_used.copy(), nodes.mem_used.copy(),
        nodes.cpu_total, nodes.mem_total, nodes.pool_lo, nodes.pool_hi, nodes.kept_lo,
        nodes.kept_hi,
    )  # fmt: skip
    order = np.arange(left.shape[0])
    return Later(held, View(view.avail, view.usable, left, order, view.node_free, view.allowed))


@njit(cache=True)
def _after(nodes: Nodes, pools: Pools, view: View, running: Running, until: int) -> Later:
    """Free resources once every run with an estimated end of at most ``until`` has gone."""
    later = _copy(nodes, view, view.avail.copy())
    for r in range(running.pool.shape[0]):
        if running.ends[r] > until:
            break
        if running.live[r]:
            m = running.node[r]
            later.nodes.cpu_used[m] -= running.cpu[r]
            later.nodes.mem_used[m] -= running.mem[r]
            if running.gpus[r] > 0 and nodes.failed[m] == 0 and nodes.drained[m] == 0:
                later.room.left[running.pool[r]] += running.gpus[r]
    return later


@njit(cache=True)
def _head_fits(later: Later, pools: Pools, jobs: Jobs, head: int) -> bool:
    size = pools.node.shape[0]
    return fits(later.nodes, pools, jobs, head, later.room, size, (True, True, True))


@njit(cache=True)
def shadow(nodes: Nodes, pools: Pools, jobs: Jobs, head: int, view: View, running: Running) -> int:
    """The first time at which the head fits if every run uses its limit; NEVER = limits do not
    tell."""
    lo, hi = 0, 0
    for r in range(running.ends.shape[0]):
        if running.ends[r] < NEVER:
            hi = r + 1
    if hi == 0 or not _head_fits(
        _after(nodes, pools, view, running, running.ends[hi - 1]), pools, jobs, head
    ):
        return NEVER
    hi -= 1
    while lo < hi:
        mid = (lo + hi) // 2
        if _head_fits(_after(nodes, pools, view, running, running.ends[mid]), pools, jobs, head):
            hi = mid
        else:
            lo = mid + 1
    return int(running.ends[lo])


@njit(cache=True)
def _place(now: Later, pools: Pools, jobs: Jobs, j: int, placed: Array) -> bool:
    """Put job ``j`` on the waiting GPUs, node by node in name order; False where it does not
    fit."""
    size = pools.node.shape[0]
    if not fits(now.nodes, pools, jobs, j, now.room, size, (True, True, True)):
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


@njit(cache=True)
def _take(later: Later, pools: Pools, jobs: Jobs, j: int, placed: Array, sign: int) -> None:
    for p in range(placed.shape[0]):
        if placed[p] > 0:
            m = pools.node[p]
            later.room.left[p] -= sign * placed[p]
            later.nodes.cpu_used[m] += sign * jobs.cpu[j]
            later.nodes.mem_used[m] += sign * jobs.mem[j]


@njit(cache=True)
def fill(
    nodes: Nodes,
    pools: Pools,
    jobs: Jobs,
    queue: tuple[Array, int],
    view: View,
    claims: Claims,
    running: Running,
    now: int,
) -> None:
    """Add the fillable part of what waits to the claims."""
    size = pools.node.shape[0]
    waiting = np.zeros(size, np.int64)
    head = -1
    rank = NEVER
    for p in range(size):
        for c in range(claims.n[p]):
            if _waits(claims.code[p, c]):
                waiting[p] += claims.gpus[p, c]
                for q in range(queue[1]):
                    if queue[0][q] == claims.job[p, c]:
                        if q < rank:
                            rank, head = q, queue[0][q]
                        break
    if head < 0 or rank + 1 >= queue[1]:
        return
    here = _copy(nodes, view, waiting.copy())
    placed = np.zeros(size, np.int64)
    filled = np.zeros(size, np.int64)
    deadline = -1
    later = here
    for q in range(rank + 1, queue[1]):
        j = queue[0][q]
        if (
            jobs.limited[j] > 0
            or jobs.placeable[j] == 0
            or not _place(here, pools, jobs, j, placed)
        ):
            continue
        if deadline < 0:
            deadline = shadow(nodes, pools, jobs, head, view, running)
            if deadline == NEVER:
                return
            later = _after(nodes, pools, view, running, deadline)
        ends = jobs.limit_us[j] > 0 and now + jobs.limit_us[j] <= deadline
        if not ends:
            _take(later, pools, jobs, j, placed, 1)
            if not _head_fits(later, pools, jobs, head):
                _take(later, pools, jobs, j, placed, -1)
                continue
        _take(here, pools, jobs, j, placed, 1)
        filled += placed
    for p in range(size):
        if filled[p] > 0:
            c = claims.n[p]
            claims.code[p, c], claims.gpus[p, c] = C_FILLABLE, filled[p]
            claims.job[p, c], claims.ripe[p, c] = head, 0
            claims.n[p] = c + 1
