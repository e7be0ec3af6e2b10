"""The first rules, node by node: failed, drained, unknown, reserved, what CPU and memory leave."""

from __future__ import annotations

from analytics.ledger.kernel.changed import mark, set_usable
from analytics.ledger.kernel.compiled import leaf
from analytics.ledger.kernel.state import (
    A_COVER,
    A_DIRTY,
    A_PREFIX,
    BASE,
    C_CPU,
    C_DRAINED,
    C_FAILED,
    C_HIGH,
    C_LOW,
    C_MEM,
    C_RESERVED,
    C_ROGUE,
    C_UNKNOWN,
    D_CPU,
    D_CPU_HIGH,
    D_CPU_LOW,
    D_HEADROOM,
    D_MEM,
    D_MEM_HIGH,
    D_MEM_LOW,
    K_ACTIVE,
    K_GPUS,
    K_USED,
    N_COVERED,
    N_CPU,
    N_CPU_TOTAL,
    N_DRAINED,
    N_FAILED,
    N_FREE,
    N_KEPT_HI,
    N_KEPT_LO,
    N_MEM,
    N_MEM_TOTAL,
    N_POOL_HI,
    N_POOL_LO,
    NEW,
    P_AVAIL,
    P_BROKEN,
    P_EXTRA,
    P_HELD,
    P_INSTALLED,
    P_KEPT,
    P_NODE,
    P_OPEN,
    P_ROGUE,
    P_USABLE,
    STANDING,
    T_DIRTY,
    UNLIMITED,
    ZERO,
    Array,
    World,
)


@leaf
def quotient(total: int, used: int, per_gpu: int) -> int:
    """How many GPUs the rest of a resource can serve."""
    if total < 0 or per_gpu <= 0:
        return UNLIMITED
    return max(total - used, 0) // per_gpu


@leaf
def per_gpu(total: int, gpus: int, profile: int) -> int:
    """Resource per GPU: by the profile, or the node's own ratio without one."""
    if profile >= 0:
        return profile
    if total < 0 or gpus <= 0:
        return 0
    return total // gpus


@leaf
def usable_gpus(nodes: Array, n: int, gpus: int, free: int, cpu: int, mem: int) -> tuple[int, bool]:
    """GPUs of a node that its CPU and memory can still serve; True where CPU is what binds."""
    total = nodes[N_CPU_TOTAL, n]
    by_cpu = quotient(total, nodes[N_CPU, n], per_gpu(total, gpus, cpu))
    total = nodes[N_MEM_TOTAL, n]
    by_mem = quotient(total, nodes[N_MEM, n], per_gpu(total, gpus, mem))
    return min(free, by_cpu, by_mem), by_cpu <= by_mem


@leaf
def kept_gpus(nodes: Array, kept: Array, n: int) -> int:
    """GPUs of a node that reservations still keep."""
    total = ZERO
    for r in range(nodes[N_KEPT_LO, n], nodes[N_KEPT_HI, n]):
        if kept[K_ACTIVE, r] > 0:
            if kept[K_GPUS, r] < 0:
                return UNLIMITED
            total += max(kept[K_GPUS, r] - kept[K_USED, r], 0)
    return int(total)


@leaf
def first_rules(nodes: Array, pools: Array, kept: Array, base: Array, n: int, cover: int) -> None:
    """failed, drained, unknown and reserved of one node; the rest is open."""
    keep = kept_gpus(nodes, kept, n)
    covered = nodes[N_COVERED, n] + cover > 0
    for p in range(nodes[N_POOL_LO, n], nodes[N_POOL_HI, n]):
        free = pools[P_INSTALLED, p] - pools[P_HELD, p]
        for code in range(BASE):
            base[p, NEW, code] = 0
        if nodes[N_FAILED, n] == 0 and covered:
            rogue = min(pools[P_ROGUE, p], free)
            base[p, NEW, C_ROGUE] = rogue
            free -= rogue
        broken = free if nodes[N_FAILED, n] > 0 else min(pools[P_BROKEN, p], free)
        base[p, NEW, C_FAILED] = broken
        free -= broken
        if nodes[N_DRAINED, n] > 0:
            base[p, NEW, C_DRAINED] = free
            free = 0
        elif not covered:
            base[p, NEW, C_UNKNOWN] = free
            free = 0
        taken = min(keep, free)
        keep -= taken
        pools[P_KEPT, p] = taken
        pools[P_OPEN, p] = free - taken


@leaf
def headroom(world: World, wanted: int) -> None:
    """Free GPUs on the lowest node names are kept empty, as many as the operator wants and there
    are; nodes on which that changes are dirty."""
    pools, at = world.pools, world.at
    p = 0
    while p < pools.shape[1] and (wanted > 0 or p < at[A_PREFIX]):
        taken = min(wanted, pools[P_OPEN, p])
        wanted -= taken
        if pools[P_EXTRA, p] != taken:
            pools[P_EXTRA, p] = taken
            mark(world, pools[P_NODE, p])
        p += 1
    at[A_PREFIX] = p


@leaf
def by_profile(world: World, n: int, row: int) -> None:
    """stranded_cpu and stranded_mem of one node by the demand profile."""
    nodes, pools, base, demand = world.nodes, world.pools, world.base, world.demand
    free, gpus = ZERO, ZERO
    for p in range(nodes[N_POOL_LO, n], nodes[N_POOL_HI, n]):
        pools[P_AVAIL, p] = pools[P_OPEN, p] - pools[P_EXTRA, p]
        free += pools[P_AVAIL, p]
        gpus += pools[P_INSTALLED, p]
    use, cpu_binds = usable_gpus(nodes, n, gpus, free, demand[row, D_CPU], demand[row, D_MEM])
    low, _ = usable_gpus(nodes, n, gpus, free, demand[row, D_CPU_LOW], demand[row, D_MEM_LOW])
    high, _ = usable_gpus(nodes, n, gpus, free, demand[row, D_CPU_HIGH], demand[row, D_MEM_HIGH])
    nodes[N_FREE, n] = free
    for p in range(nodes[N_POOL_LO, n], nodes[N_POOL_HI, n]):
        there = pools[P_AVAIL, p]
        base[p, NEW, C_RESERVED] = pools[P_KEPT, p] + pools[P_EXTRA, p]
        take = min(use, there)
        use -= take
        for group in range(world.allowed.shape[0]):
            if world.allowed[group, p]:
                world.totals[STANDING, group] += take - pools[P_USABLE, p]
        set_usable(world, p, take)
        base[p, NEW, C_CPU] = there - take if cpu_binds else 0
        base[p, NEW, C_MEM] = 0 if cpu_binds else there - take
        take = min(low, there)
        low -= take
        base[p, NEW, C_LOW] = there - take
        take = min(high, there)
        high -= take
        base[p, NEW, C_HIGH] = there - take


@leaf
def rebase(world: World, row: int) -> None:
    """Judge the nodes that changed by every rule up to the demand profile."""
    nodes, at, dirty = world.nodes, world.at, world.lists[T_DIRTY]
    for k in range(at[A_DIRTY]):
        first_rules(nodes, world.pools, world.kept, world.base, dirty[k], at[A_COVER])
    wanted = world.demand[row, D_HEADROOM]
    if wanted > 0 or at[A_PREFIX] > 0:
        headroom(world, wanted)
    for k in range(at[A_DIRTY]):
        by_profile(world, dirty[k], row)
