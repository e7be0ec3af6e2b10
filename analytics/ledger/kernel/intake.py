"""One event taken in: what it changes of a node, a pool, a reservation or the queue."""

from __future__ import annotations

from analytics.ledger.kernel.changed import mark
from analytics.ledger.kernel.compiled import leaf
from analytics.ledger.kernel.line import drop_job, put_job
from analytics.ledger.kernel.state import (
    A_COVER,
    A_RESHAPED,
    A_ROW,
    A_WAITING,
    BLOCK,
    BROKEN,
    COVERED,
    COVERED_ALL,
    CPU,
    CPU_TOTAL,
    DRAINED,
    FAILED,
    HELD,
    INSTALLED,
    J_LIMITED,
    J_PLACEABLE,
    J_PRIORITY,
    K_ACTIVE,
    K_NODE,
    K_USED,
    LIMITED,
    MEM,
    MEM_TOTAL,
    N_COVERED,
    N_CPU,
    N_CPU_TOTAL,
    N_DRAINED,
    N_FAILED,
    N_MEM,
    N_MEM_TOTAL,
    P_BROKEN,
    P_HELD,
    P_INSTALLED,
    P_NODE,
    P_ROGUE,
    PARAMETERS,
    PENDING,
    PRIORITY,
    R_LIVE,
    RESERVED,
    ROGUE,
    RUNS,
    World,
)


@leaf
def _on_node(world: World, kind: int, i: int, val: int) -> None:
    """One event on a node, pool or reservation."""
    nodes, pools, kept = world.nodes, world.pools, world.kept
    n = i
    if kind == INSTALLED or kind == HELD or kind == ROGUE or kind == BROKEN:
        n = pools[P_NODE, i]
        if kind == INSTALLED:
            pools[P_INSTALLED, i] += val
        elif kind == HELD:
            pools[P_HELD, i] += val
        elif kind == ROGUE:
            pools[P_ROGUE, i] += val
        else:
            pools[P_BROKEN, i] += val
    elif kind == CPU:
        nodes[N_CPU, i] += val
    elif kind == MEM:
        nodes[N_MEM, i] += val
    elif kind == CPU_TOTAL:
        nodes[N_CPU_TOTAL, i] = val
    elif kind == MEM_TOTAL:
        nodes[N_MEM_TOTAL, i] = val
    elif kind == FAILED:
        nodes[N_FAILED, i] += val
    elif kind == DRAINED:
        nodes[N_DRAINED, i] += val
    elif kind == COVERED:
        nodes[N_COVERED, i] += val
    else:
        n = kept[K_NODE, i]
        if kind == RESERVED:
            kept[K_ACTIVE, i] += val
        else:
            kept[K_USED, i] += val
    mark(world, n)


@leaf
def _on_job(world: World, kind: int, i: int, val: int) -> None:
    """One event on a pending job."""
    at, queue, jobs = world.at, world.queue, world.jobs
    if kind == LIMITED:
        jobs[J_LIMITED, i] = val
        return
    found = at[A_WAITING]
    if kind == PENDING and val > 0:
        at[A_WAITING] = put_job(queue, found, jobs, i)
        jobs[J_PLACEABLE, i] = -1
        return
    at[A_WAITING] = drop_job(queue, found, i)
    if kind == PRIORITY:
        jobs[J_PRIORITY, i] = val
        if found > at[A_WAITING]:
            at[A_WAITING] = put_job(queue, at[A_WAITING], jobs, i)


@leaf
def take_in(world: World, e: int) -> None:
    """Apply one event."""
    nodes, at = world.nodes, world.at
    kind, i, val = world.events[1, e], world.events[2, e], world.events[3, e]
    if kind == PENDING or kind == PRIORITY or kind == LIMITED:
        _on_job(world, kind, i, val)
    elif kind == RUNS:
        world.running[R_LIVE, i] += val
        world.blocks[i // BLOCK] += val
    elif kind == COVERED_ALL or kind == PARAMETERS:
        if kind == COVERED_ALL:
            at[A_COVER] += val
        else:
            at[A_ROW] = i
        for n in range(nodes.shape[1]):
            mark(world, n)
    else:
        _on_node(world, kind, i, val)
        if kind == INSTALLED or kind == CPU_TOTAL or kind == MEM_TOTAL:
            at[A_RESHAPED] = 1
