"""The main loop of the sweep: apply the events of one instant, judge, post what changed."""

from __future__ import annotations

import numpy as np

from analytics.ledger.kernel.compiled import driver, leaf
from analytics.ledger.kernel.fill import fill
from analytics.ledger.kernel.intake import take_in
from analytics.ledger.kernel.line import placeable
from analytics.ledger.kernel.posting import close, spill
from analytics.ledger.kernel.rules import rebase
from analytics.ledger.kernel.state import (
    A_BEFORE,
    A_CLAIMED,
    A_DIRTY,
    A_NEXT,
    A_PASS,
    A_RESHAPED,
    A_ROW,
    A_SLOT,
    A_WAITING,
    BASE,
    CAUSE_COLUMNS,
    D_PASS,
    J_PLACEABLE,
    N_DIRTY,
    N_EPOCH,
    N_POOL_HI,
    N_POOL_LO,
    NEW,
    OLD,
    OPEN,
    P_CLAIMS,
    P_OLD_CLAIMS,
    P_OLD_USABLE,
    P_USABLE,
    T_BEFORE,
    T_CLAIMED,
    T_DIRTY,
    Array,
    World,
)
from analytics.ledger.kernel.walk import walk


@leaf
def _forget(world: World) -> None:
    """Which jobs the empty cluster could take is not known any more."""
    for j in range(world.jobs.shape[1]):
        world.jobs[J_PLACEABLE, j] = -1
    for shape in range(world.tried.shape[1]):
        world.tried[2, shape] = -1
    world.at[A_RESHAPED] = 0


@leaf
def _judge(world: World, t: int) -> None:
    """What the queue makes of the GPUs that the base leaves."""
    pools, at, lists = world.pools, world.at, world.lists
    for k in range(at[A_CLAIMED]):
        lists[T_BEFORE, k] = lists[T_CLAIMED, k]
        pools[P_CLAIMS, lists[T_CLAIMED, k]] = 0
    at[A_BEFORE], at[A_CLAIMED] = at[A_CLAIMED], 0
    at[A_PASS] += 1
    if at[A_RESHAPED]:
        _forget(world)
    if at[A_WAITING] > 0:
        placeable(world, at[A_WAITING])
        walk(world, t, world.demand[at[A_ROW], D_PASS])
        fill(world, t)


@leaf
def _differ(world: World, p: int) -> bool:
    claims, pools = world.claims, world.pools
    if pools[P_CLAIMS, p] != pools[P_OLD_CLAIMS, p]:
        return True
    for place in range(pools[P_CLAIMS, p]):
        for column in range(4):
            if claims[NEW, p, place, column] != claims[OLD, p, place, column]:
                return True
    return False


@leaf
def _turn(world: World, p: int) -> None:
    """What a pool is now becomes what it was."""
    pools, base, claims = world.pools, world.base, world.claims
    for code in range(BASE):
        base[p, OLD, code] = base[p, NEW, code]
    pools[P_OLD_USABLE, p], pools[P_OLD_CLAIMS, p] = pools[P_USABLE, p], pools[P_CLAIMS, p]
    for place in range(pools[P_CLAIMS, p]):
        for column in range(4):
            claims[OLD, p, place, column] = claims[NEW, p, place, column]


@leaf
def _post(world: World, t: int, out: Array, n: int) -> int:
    """Close the pools that are not what they were; the new number of causes."""
    nodes, at, lists = world.nodes, world.at, world.lists
    for k in range(at[A_DIRTY]):
        m = lists[T_DIRTY, k]
        for p in range(nodes[N_POOL_LO, m], nodes[N_POOL_HI, m]):
            n = close(world, p, t, out, n)
            _turn(world, p)
    for k in range(at[A_BEFORE] + at[A_CLAIMED]):
        before = k < at[A_BEFORE]
        p = lists[T_BEFORE, k] if before else lists[T_CLAIMED, k - at[A_BEFORE]]
        if _differ(world, p):
            n = close(world, p, t, out, n)
            _turn(world, p)
    for k in range(at[A_DIRTY]):
        m = lists[T_DIRTY, k]
        nodes[N_EPOCH, m] += 1
        nodes[N_DIRTY, m] = 0
    at[A_DIRTY] = 0
    return n


@driver
def advance(world: World, out: Array) -> int:
    """Go on until the last slice ends or ``out`` is nearly full; the number of causes in it."""
    at, events, bounds = world.at, world.events, world.bounds
    pools = world.pools
    most = pools.shape[1] * (OPEN + world.claims.shape[2] + 2)
    n, last = at[A_NEXT] * 0, bounds.shape[0] - 1
    while at[A_SLOT] < last and n + most <= out.shape[0]:
        end = bounds[at[A_SLOT] + 1]
        e = at[A_NEXT]
        if e == events.shape[1] or events[0, e] >= end:
            for p in range(pools.shape[1]):
                n = close(world, p, end, out, n)
                n = spill(world, p, out, n)
            at[A_SLOT] += 1
            continue
        t = events[0, e]
        while e < events.shape[1] and events[0, e] == t:
            take_in(world, e)
            e += 1
        at[A_NEXT] = e
        rebase(world, at[A_ROW])
        _judge(world, t)
        n = _post(world, t, out, n)
    return int(n)


def sweep(world: World) -> Array:
    """All slices: posts are added to ``world.posts``; returns the rows of causes, which may name
    one (pool, slice, code, job) several times."""
    pools, width = world.pools.shape[1], world.claims.shape[2]
    out = np.empty((2 * pools * (OPEN + width + 2) + 4096, CAUSE_COLUMNS), np.int64)
    found = [out[:0]]
    while world.at[A_SLOT] < world.bounds.shape[0] - 1:
        found.append(out[: advance(world, out)].copy())
    return np.concatenate(found)
