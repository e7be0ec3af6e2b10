"""The queue's order, and whether a job could start on free GPUs."""

from __future__ import annotations

import numpy as np

from analytics.ledger.kernel.compiled import leaf
from analytics.ledger.kernel.state import (
    FULL,
    J_CPU,
    J_ELIGIBLE,
    J_FULL,
    J_GROUP,
    J_LEVEL,
    J_MEM,
    J_PER_NODE,
    J_PLACEABLE,
    J_PRIORITY,
    J_REST,
    J_SHAPE,
    N_CPU,
    N_CPU_TOTAL,
    N_MEM,
    N_MEM_TOTAL,
    P_DOMAIN,
    P_INSTALLED,
    P_LEFT,
    P_NODE,
    P_ORDER,
    REST,
    ZERO,
    Array,
    World,
)

# Which rules of a start count; typed, since numba compiles anew for every plain number.
CPU_RULE, MEM_RULE, TOPOLOGY_RULE = 1, 2, 4
ALL: Array = np.int64(7)
NOT_CPU: Array = np.int64(6)
NOT_MEM: Array = np.int64(5)
NOT_HOST: Array = np.int64(4)
NOT_TOPOLOGY: Array = np.int64(3)


@leaf
def _before(jobs: Array, a: int, b: int) -> bool:
    """Whether job ``a`` stands before job ``b``: priority, then eligible time, then name."""
    if jobs[J_PRIORITY, a] != jobs[J_PRIORITY, b]:
        return bool(jobs[J_PRIORITY, a] > jobs[J_PRIORITY, b])
    if jobs[J_ELIGIBLE, a] != jobs[J_ELIGIBLE, b]:
        return bool(jobs[J_ELIGIBLE, a] < jobs[J_ELIGIBLE, b])
    return a < b


@leaf
def put_job(queue: Array, n: int, jobs: Array, j: int) -> int:
    """Insert ``j`` into the ordered queue; return its new length."""
    lo, hi = ZERO, n
    while lo < hi:
        mid = (lo + hi) // 2
        if _before(jobs, queue[mid], j):
            lo = mid + 1
        else:
            hi = mid
    for k in range(n, lo, -1):
        queue[k] = queue[k - 1]
    queue[lo] = j
    return n + 1


@leaf
def drop_job(queue: Array, n: int, j: int) -> int:
    """Take ``j`` out of the queue, if it is there; return the new length."""
    for k in range(n):
        if queue[k] == j:
            for m in range(k, n - 1):
                queue[m] = queue[m + 1]
            return n - 1
    return n


@leaf
def _is_placeable(world: World, j: int) -> bool:
    nodes, pools, jobs = world.nodes, world.pools, world.jobs
    full, rest = ZERO, ZERO
    for p in range(pools.shape[1]):
        m = pools[P_NODE, p]
        if not world.allowed[jobs[J_GROUP, j], p]:
            continue
        if 0 <= nodes[N_CPU_TOTAL, m] < jobs[J_CPU, j]:
            continue
        if 0 <= nodes[N_MEM_TOTAL, m] < jobs[J_MEM, j]:
            continue
        full += pools[P_INSTALLED, p] >= jobs[J_PER_NODE, j]
        rest += pools[P_INSTALLED, p] >= jobs[J_REST, j]
    return bool(full >= jobs[J_FULL, j] and (jobs[J_REST, j] == 0 or rest > jobs[J_FULL, j]))


@leaf
def placeable(world: World, waiting: int) -> None:
    """Find out for jobs that were not judged yet whether the empty cluster could take them."""
    for q in range(waiting):
        j = world.queue[q]
        if world.jobs[J_PLACEABLE, j] < 0:
            shape = world.jobs[J_SHAPE, j]
            if world.tried[2, shape] < 0:
                world.tried[2, shape] = 1 if _is_placeable(world, j) else 0
            world.jobs[J_PLACEABLE, j] = world.tried[2, shape]


@leaf
def room_for(total: int, used: int, need: int) -> bool:
    """Whether the rest of a resource is enough; what is not known is."""
    return total < 0 or total - used >= need


@leaf
def host_room(nodes: Array, jobs: Array, j: int, m: int, view: int, rules: int) -> bool:
    """Whether node ``m`` has the CPU and memory that job ``j`` wants of a node."""
    if rules & CPU_RULE and not room_for(
        nodes[N_CPU_TOTAL, m], nodes[N_CPU + view, m], jobs[J_CPU, j]
    ):
        return False
    return not rules & MEM_RULE or room_for(
        nodes[N_MEM_TOTAL, m], nodes[N_MEM + view, m], jobs[J_MEM, j]
    )


@leaf
def fits(world: World, j: int, view: int, first: int, n: int, rules: int) -> int:
    """The domain in which job ``j`` could start on the free GPUs of a view, looking at places
    ``first`` to ``n`` of its order; 0 where topology does not count, -1 = it could not."""
    pools, jobs, counts = world.pools, world.jobs, world.counts
    level = jobs[J_LEVEL, j] if rules & TOPOLOGY_RULE else -1
    per_node, remainder = jobs[J_PER_NODE, j], jobs[J_REST, j]
    wanted, group = jobs[J_FULL, j], jobs[J_GROUP, j]
    for d in range(1 if level < 0 else counts.shape[1]):
        counts[FULL, d], counts[REST, d] = 0, 0
    for k in range(first, n):
        p = pools[P_ORDER + view, k]
        left = pools[P_LEFT + view, p]
        if left == 0 or not world.allowed[group, p]:
            continue
        d = 0 if level < 0 else pools[P_DOMAIN + level, p]
        if d < 0 or not host_room(world.nodes, jobs, j, pools[P_NODE, p], view, rules):
            continue
        counts[FULL, d] += left >= per_node
        counts[REST, d] += left >= remainder
        if counts[FULL, d] >= wanted and (remainder == 0 or counts[REST, d] > wanted):
            return int(d)
    return -1
