"""The queue at one instant: which pending job keeps which free GPUs from being simply free."""

from __future__ import annotations

from analytics.ledger.kernel.changed import new_claim
from analytics.ledger.kernel.compiled import leaf
from analytics.ledger.kernel.line import ALL, NOT_CPU, NOT_HOST, NOT_MEM, NOT_TOPOLOGY, fits
from analytics.ledger.kernel.state import (
    A_FIRST,
    A_HEAD,
    A_LINE,
    A_PASS,
    A_UNCLAIMED,
    A_USABLE,
    A_WAITING,
    C_CPU_REQUEST,
    C_GANG,
    C_LIMIT,
    C_MEM_REQUEST,
    C_ORDER,
    C_SHAPE,
    C_TOPOLOGY,
    HERE,
    J_FIT_PASS,
    J_FIT_SINCE,
    J_GPUS,
    J_GROUP,
    J_LEVEL,
    J_LIMITED,
    J_PLACEABLE,
    L_CODE,
    L_GPUS,
    L_JOB,
    L_RIPE,
    N_FREE,
    NEW,
    NOW,
    P_LEFT,
    P_NODE,
    P_ORDER,
    P_USABLE,
    STANDING,
    T_USABLE,
    UNCLAIMED,
    ZERO,
    World,
)


@leaf
def _fits_now(world: World, j: int, rules: int) -> bool:
    at = world.at
    return bool(fits(world, j, NOW, at[A_FIRST], at[A_LINE], rules) >= 0)


@leaf
def _verdict(world: World, j: int, total: int) -> int:
    """Why job ``j`` does not run on what is unclaimed; -1 = its own limit, and it would not fit."""
    jobs = world.jobs
    fit = total >= jobs[J_GPUS, j] and _fits_now(world, j, ALL)
    if jobs[J_LIMITED, j] > 0:
        return C_LIMIT if fit else -1
    if fit:
        return C_ORDER
    if total < jobs[J_GPUS, j]:
        return C_GANG
    if jobs[J_LEVEL, j] >= 0 and _fits_now(world, j, NOT_TOPOLOGY):
        return C_TOPOLOGY
    if _fits_now(world, j, NOT_CPU):
        return C_CPU_REQUEST
    if _fits_now(world, j, NOT_MEM):
        return C_MEM_REQUEST
    if _fits_now(world, j, NOT_HOST):
        return C_CPU_REQUEST
    return C_SHAPE


@leaf
def _claim(world: World, j: int, code: int, ripe: int) -> None:
    """Take up to the job's GPUs, fullest node first."""
    pools, at, group = world.pools, world.at, world.jobs[J_GROUP, j]
    need = world.jobs[J_GPUS, j]
    waits = code != C_ORDER and code != C_LIMIT
    for k in range(at[A_FIRST], at[A_LINE]):
        p = pools[P_ORDER, k]
        take = min(need, pools[P_LEFT, p])
        if take == 0 or not world.allowed[group, p]:
            continue
        place = new_claim(world, p)
        claims = world.claims
        claims[NEW, p, place, L_CODE], claims[NEW, p, place, L_GPUS] = code, take
        claims[NEW, p, place, L_JOB], claims[NEW, p, place, L_RIPE] = j, ripe
        pools[P_LEFT, p] -= take
        at[A_UNCLAIMED] -= take
        if waits:
            pools[P_LEFT + HERE, p] += take
        for g in range(world.allowed.shape[0]):
            if world.allowed[g, p]:
                world.totals[UNCLAIMED, g] -= take
        need -= take
        if need == 0:
            break
    while at[A_FIRST] < at[A_LINE] and pools[P_LEFT, pools[P_ORDER, at[A_FIRST]]] == 0:
        at[A_FIRST] += 1


@leaf
def _line_up(world: World) -> None:
    """Order the pools with usable GPUs by (free GPUs on the node, node name)."""
    pools, nodes, place, at = world.pools, world.nodes, world.bucket, world.at
    for k in range(place.shape[0]):
        place[k] = 0
    n, total, listed = at[A_USABLE], ZERO, world.lists[T_USABLE]
    for k in range(n):
        p = listed[k]
        usable = pools[P_USABLE, p]
        pools[P_LEFT, p], pools[P_LEFT + HERE, p] = usable, 0
        place[nodes[N_FREE, pools[P_NODE, p]] + 1] += 1
        total += usable
    for k in range(1, place.shape[0]):
        place[k] += place[k - 1]
    for k in range(n):
        free = nodes[N_FREE, pools[P_NODE, listed[k]]]
        pools[P_ORDER, place[free]] = listed[k]
        place[free] += 1
    at[A_FIRST], at[A_LINE], at[A_UNCLAIMED] = 0, n, total
    for g in range(world.totals.shape[1]):
        world.totals[UNCLAIMED, g] = world.totals[STANDING, g]


@leaf
def walk(world: World, now: int, interval: int) -> None:
    """Each pending job in order tests and claims; a fit that lasts ``interval`` is ripe.

    What waits, and isn't merely passed over, is left in view HERE; A_HEAD = the first such job's
    place in the queue, or -1.
    """
    jobs, at = world.jobs, world.at
    at[A_HEAD] = -1
    _line_up(world)
    for q in range(at[A_WAITING]):
        if at[A_UNCLAIMED] == 0:
            return
        j = world.queue[q]
        total = world.totals[UNCLAIMED, jobs[J_GROUP, j]]
        if jobs[J_PLACEABLE, j] == 0 or total == 0:
            continue
        code = _verdict(world, j, total)
        if code < 0:
            continue
        ripe = ZERO
        if code == C_ORDER:
            if jobs[J_FIT_PASS, j] != at[A_PASS] - 1:
                jobs[J_FIT_SINCE, j] = now
            jobs[J_FIT_PASS, j] = at[A_PASS]
            ripe = jobs[J_FIT_SINCE, j] + interval
        elif code != C_LIMIT and at[A_HEAD] < 0:
            at[A_HEAD] = q
        _claim(world, j, code, ripe)
