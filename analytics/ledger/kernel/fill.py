"""The gap that could be filled: waiting GPUs that jobs further back could use without delaying the
head.

Time limits are all that a scheduler knows of the future, so they decide: a job may fill if it ends
by the head's shadow time, or if the head still fits at that time beside it. The shadow time is the
earliest at which the head fits once every run that is due by then has ended.
"""

from __future__ import annotations

import numpy as np

from analytics.ledger.kernel.changed import new_claim
from analytics.ledger.kernel.compiled import leaf
from analytics.ledger.kernel.line import ALL, fits, host_room
from analytics.ledger.kernel.shadow import is_ready, recount, shadow
from analytics.ledger.kernel.state import (
    A_HEAD,
    A_PASS,
    A_STAMP,
    A_USABLE,
    A_WAITING,
    C_FILLABLE,
    HERE,
    J_CPU,
    J_FULL,
    J_GPUS,
    J_GROUP,
    J_LEVEL,
    J_LIMIT_US,
    J_LIMITED,
    J_MEM,
    J_PER_NODE,
    J_PLACEABLE,
    J_REST,
    J_SHAPE,
    L_CODE,
    L_GPUS,
    L_JOB,
    L_RIPE,
    LATER,
    N_CPU,
    N_MEM,
    NEVER,
    NEW,
    P_DOMAIN,
    P_FILLED,
    P_LEFT,
    P_NODE,
    P_ORDER,
    P_PLACED,
    T_USABLE,
    ZERO,
    Array,
    World,
)

# Typed, since numba compiles a function anew for every plain number that it is given.
TAKE: Array = np.int64(1)
GIVE_BACK: Array = np.int64(-1)


@leaf
def _place(world: World, j: int, n: int) -> bool:
    """Put job ``j`` on the waiting GPUs, node by node in name order; False where it does not
    fit."""
    pools, jobs = world.pools, world.jobs
    domain = fits(world, j, HERE, ZERO, n, ALL)
    if domain < 0:
        return False
    full, rest, level = jobs[J_FULL, j], jobs[J_REST, j], jobs[J_LEVEL, j]
    for k in range(n):
        p = pools[P_ORDER + HERE, k]
        pools[P_PLACED, p] = 0
        left = pools[P_LEFT + HERE, p]
        if left == 0 or not world.allowed[jobs[J_GROUP, j], p]:
            continue
        if level >= 0 and pools[P_DOMAIN + level, p] != domain:
            continue
        if not host_room(world.nodes, jobs, j, pools[P_NODE, p], HERE, ALL):
            continue
        if full > 0 and left >= jobs[J_PER_NODE, j]:
            pools[P_PLACED, p] = jobs[J_PER_NODE, j]
            full -= 1
        elif rest > 0 and left >= rest and (full == 0 or left < jobs[J_PER_NODE, j]):
            pools[P_PLACED, p] = rest
            rest = ZERO
    return bool(full == 0 and rest == 0)


@leaf
def _take(world: World, view: int, j: int, n: int, sign: int) -> None:
    """Take what `_place` found for job ``j`` out of a view, or give it back."""
    pools, nodes, jobs = world.pools, world.nodes, world.jobs
    for k in range(n):
        p = pools[P_ORDER + HERE, k]
        if pools[P_PLACED, p] > 0:
            m = pools[P_NODE, p]
            pools[P_LEFT + view, p] -= sign * pools[P_PLACED, p]
            nodes[N_CPU + view, m] += sign * jobs[J_CPU, j]
            nodes[N_MEM + view, m] += sign * jobs[J_MEM, j]
            if view == LATER:
                recount(world, world.queue[world.at[A_HEAD]], m)


@leaf
def _spread_out(world: World) -> int:
    """List the pools on which something waits, in name order; their number."""
    pools, nodes, n = world.pools, world.nodes, ZERO
    for k in range(world.at[A_USABLE]):
        p = world.lists[T_USABLE, k]
        pools[P_FILLED, p] = 0
        if pools[P_LEFT + HERE, p] > 0:
            m = pools[P_NODE, p]
            nodes[N_CPU + HERE, m], nodes[N_MEM + HERE, m] = nodes[N_CPU, m], nodes[N_MEM, m]
            pools[P_ORDER + HERE, n] = p
            n += 1
    return int(n)


@leaf
def _fill_one(world: World, j: int, n: int, now: int, deadline: int) -> bool:
    """Whether placed job ``j`` may fill: it ends in time, or the head fits beside it."""
    limit = world.jobs[J_LIMIT_US, j]
    if limit > 0 and now + limit <= deadline:
        return True
    tried, shape, at = world.tried, world.jobs[J_SHAPE, j], world.at
    if tried[1, shape] == at[A_STAMP]:
        return False  # the same wish was refused, and nothing was taken since
    _take(world, LATER, j, n, TAKE)
    if is_ready(world, world.queue[at[A_HEAD]]):
        return True
    _take(world, LATER, j, n, GIVE_BACK)
    tried[1, shape] = at[A_STAMP]
    return False


@leaf
def fill(world: World, now: int) -> None:
    """Add the fillable part of what waits to the claims."""
    at, jobs, pools = world.at, world.jobs, world.pools
    rank = at[A_HEAD]
    if rank < 0 or rank + 1 >= at[A_WAITING]:
        return
    n = _spread_out(world)
    waiting = ZERO
    for k in range(n):
        waiting += pools[P_LEFT + HERE, pools[P_ORDER + HERE, k]]
    deadline = ZERO - 1
    at[A_STAMP] += 1
    for q in range(rank + 1, at[A_WAITING]):
        j = world.queue[q]
        shape = jobs[J_SHAPE, j]
        if jobs[J_LIMITED, j] > 0 or jobs[J_PLACEABLE, j] == 0 or jobs[J_GPUS, j] > waiting:
            continue
        if world.tried[0, shape] == at[A_PASS]:
            continue  # the same wish did not fit, and no more has come free
        if not _place(world, j, n):
            world.tried[0, shape] = at[A_PASS]
            continue
        if deadline < 0:
            deadline = shadow(world, world.queue[rank], now)
            if deadline == NEVER:
                return
        if _fill_one(world, j, n, now, deadline):
            _take(world, HERE, j, n, TAKE)
            at[A_STAMP] += 1
            waiting -= jobs[J_GPUS, j]
            for k in range(n):
                p = pools[P_ORDER + HERE, k]
                pools[P_FILLED, p] += pools[P_PLACED, p]
    for k in range(n):
        p = pools[P_ORDER + HERE, k]
        if pools[P_FILLED, p] > 0:
            claims, place = world.claims, new_claim(world, p)
            claims[NEW, p, place, L_CODE] = C_FILLABLE
            claims[NEW, p, place, L_GPUS] = pools[P_FILLED, p]
            claims[NEW, p, place, L_JOB] = world.queue[rank]
            claims[NEW, p, place, L_RIPE] = 0
