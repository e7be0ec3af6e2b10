"""When the head of the queue could start, if every run used its time limit in full."""

from __future__ import annotations

from analytics.ledger.kernel.compiled import leaf
from analytics.ledger.kernel.line import ALL, host_room
from analytics.ledger.kernel.state import (
    BLOCK,
    J_FULL,
    J_GROUP,
    J_LEVEL,
    J_PER_NODE,
    J_REST,
    LATER,
    N_CPU,
    N_DRAINED,
    N_FAILED,
    N_MEM,
    N_POOL_HI,
    N_POOL_LO,
    NEVER,
    P_AVAIL,
    P_BITS,
    P_DOMAIN,
    P_LEFT,
    R_CPU,
    R_ENDS,
    R_GPUS,
    R_LIVE,
    R_MEM,
    R_NODE,
    R_POOL,
    READY_FULL,
    READY_REST,
    ZERO,
    World,
)


@leaf
def recount(world: World, j: int, m: int) -> None:
    """Bring up to date how many pools of node ``m`` could serve the head later."""
    pools, jobs, counts, level = world.pools, world.jobs, world.counts, world.jobs[J_LEVEL, j]
    for p in range(world.nodes[N_POOL_LO, m], world.nodes[N_POOL_HI, m]):
        d = 0 if level < 0 else pools[P_DOMAIN + level, p]
        if d < 0 or not world.allowed[jobs[J_GROUP, j], p]:
            continue
        left, old, new = pools[P_LEFT + LATER, p], pools[P_BITS, p], ZERO
        if left > 0 and host_room(world.nodes, jobs, j, m, LATER, ALL):
            new = ZERO + (left >= jobs[J_PER_NODE, j]) + 2 * (left >= jobs[J_REST, j])
        counts[READY_FULL, d] += (new & 1) - (old & 1)
        counts[READY_REST, d] += (new >> 1) - (old >> 1)
        pools[P_BITS, p] = new


@leaf
def is_ready(world: World, j: int) -> bool:
    jobs, counts = world.jobs, world.counts
    full, rest = jobs[J_FULL, j], jobs[J_REST, j]
    for d in range(1 if jobs[J_LEVEL, j] < 0 else counts.shape[1]):
        if counts[READY_FULL, d] >= full and (rest == 0 or counts[READY_REST, d] > full):
            return True
    return False


@leaf
def _as_now(world: World, head: int) -> None:
    """View LATER as the cluster is now."""
    nodes, pools, counts = world.nodes, world.pools, world.counts
    for d in range(counts.shape[1]):
        counts[READY_FULL, d], counts[READY_REST, d] = 0, 0
    for p in range(pools.shape[1]):
        pools[P_LEFT + LATER, p], pools[P_BITS, p] = pools[P_AVAIL, p], 0
    for m in range(nodes.shape[1]):
        nodes[N_CPU + LATER, m], nodes[N_MEM + LATER, m] = nodes[N_CPU, m], nodes[N_MEM, m]
        recount(world, head, m)


@leaf
def _release(world: World, r: int, head: int) -> None:
    """View LATER without run row ``r``; what is out of order gives no GPUs back."""
    nodes, pools, running = world.nodes, world.pools, world.running
    m = running[R_NODE, r]
    nodes[N_CPU + LATER, m] -= running[R_CPU, r]
    nodes[N_MEM + LATER, m] -= running[R_MEM, r]
    if running[R_GPUS, r] > 0 and nodes[N_FAILED, m] == 0 and nodes[N_DRAINED, m] == 0:
        pools[P_LEFT + LATER, running[R_POOL, r]] += running[R_GPUS, r]
    recount(world, head, m)


@leaf
def shadow(world: World, head: int, now: int) -> int:
    """The shadow time, with view LATER as it is then; NEVER = limits do not tell."""
    running = world.running
    _as_now(world, head)
    moment, r, rows = now, ZERO, running.shape[1]
    while r < rows:
        if r % BLOCK == 0 and world.blocks[r // BLOCK] == 0:
            r += BLOCK
            continue
        if running[R_LIVE, r]:
            if running[R_ENDS, r] > moment:
                if is_ready(world, head):
                    return int(moment)
                moment = running[R_ENDS, r]
                if moment >= NEVER:
                    return NEVER
            _release(world, r, head)
        r += 1
    return int(moment) if is_ready(world, head) else NEVER
