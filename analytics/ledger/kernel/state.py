"""The compiled sweep over all cut times of a cluster: what every GPU that is not held was.

Plain functions over arrays, so that the same bodies run uncompiled in tests. Times are
microseconds.
One segment = ``(pool, t0, t1, code, gpus, job, ripe)``: so many GPUs of a pool had this code all
the
time; ``job`` = the pending job that decides it, or -1; ``ripe`` = when a job that fits turns its
GPUs
from free to policy_blocked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from analytics.ledger.kernel.compiled import leaf

Array = Any  # an int64 ndarray; numba needs no more

# Kinds of events: idx names a pool, node, reservation, job or parameter row; val is a difference
# or value.
(
    INSTALLED, CPU, MEM, CPU_TOTAL, MEM_TOTAL, FAILED, DRAINED, COVERED, COVERED_ALL, RESERVED,
    HELD, RESERVED_USED, BROKEN, PENDING, PRIORITY, LIMITED, PARAMETERS, RUNS, ROGUE,
) = range(19)  # fmt: skip

# Codes of segments; the first ones are the base of a pool, claims carry a job.
(
    C_FAILED, C_DRAINED, C_UNKNOWN, C_RESERVED, C_CPU, C_MEM, C_LOW, C_HIGH, C_ROGUE, C_FREE,
    C_GANG, C_CPU_REQUEST, C_MEM_REQUEST, C_SHAPE, C_TOPOLOGY, C_ORDER, C_LIMIT, C_FILLABLE,
) = range(18)  # fmt: skip
BASE = 9

# Columns of a parameter row.
P_CPU, P_MEM, P_CPU_LOW, P_MEM_LOW, P_CPU_HIGH, P_MEM_HIGH, P_HEADROOM, P_PASS = range(8)

UNLIMITED = 2**62
# Typed, since numba compiles a function anew for every plain number that it is given.
NO_JOB: Any = np.int64(-1)
ZERO: Any = np.int64(0)
FREE: Any = np.int64(C_FREE)


class Nodes(NamedTuple):
    """Per node; a total of -1 = not known, never binds. Pools ``pool_lo:pool_hi`` are the
    node's."""

    failed: Array
    drained: Array
    covered: Array
    cpu_used: Array
    mem_used: Array
    cpu_total: Array
    mem_total: Array
    pool_lo: Array
    pool_hi: Array
    kept_lo: Array
    kept_hi: Array


class Pools(NamedTuple):
    """Per pool: GPUs; ``domain[level, pool]`` = its leaf, rack and spine (-1 = not known)."""

    node: Array
    installed: Array
    held: Array
    broken: Array
    rogue: Array
    domain: Array


class Kept(NamedTuple):
    """Per reservation: GPUs kept (-1 = all), GPUs its own accounts hold, active."""

    gpus: Array
    used: Array
    active: Array


class Jobs(NamedTuple):
    """Per pending job; ``full`` nodes with ``per_node`` GPUs each and, if any, one with
    ``rest``."""

    gpus: Array
    per_node: Array
    full: Array
    rest: Array
    cpu: Array
    mem: Array
    level: Array
    group: Array
    eligible: Array
    priority: Array
    limited: Array
    limit_us: Array
    fit_since: Array
    fit_pass: Array
    placeable: Array


class View(NamedTuple):
    """What the base leaves for the queue: per pool, and the pools with something, fullest node
    first; ``full``, ``rest`` (per domain) and ``bucket`` (per number of free GPUs) are for
    counting."""

    avail: Array
    usable: Array
    left: Array
    order: Array
    node_free: Array
    allowed: Array
    full: Array
    rest: Array
    bucket: Array


class Claims(NamedTuple):
    """Per pool the claims of one pass."""

    n: Array
    code: Array
    gpus: Array
    job: Array
    ripe: Array


@leaf
def quotient(total: int, used: int, per_gpu: int) -> int:
    """How many GPUs the rest of a resource can serve."""
    if total < 0 or per_gpu <= 0:
        return UNLIMITED
    return max(total - used, 0) // per_gpu


@leaf
def demand(total: int, gpus: int, profile: int) -> int:
    """Resource per GPU: by the profile, or the node's own ratio without one."""
    if profile >= 0:
        return profile
    if total < 0 or gpus <= 0:
        return 0
    return total // gpus


@leaf
def usable_gpus(nodes: Nodes, n: int, gpus: int, free: int, cpu: int, mem: int) -> tuple[int, bool]:
    """GPUs of a node that its CPU and memory can still serve; True where CPU is what binds."""
    by_cpu = quotient(nodes.cpu_total[n], nodes.cpu_used[n], demand(nodes.cpu_total[n], gpus, cpu))
    by_mem = quotient(nodes.mem_total[n], nodes.mem_used[n], demand(nodes.mem_total[n], gpus, mem))
    return min(free, by_cpu, by_mem), by_cpu <= by_mem


@leaf
def kept_gpus(nodes: Nodes, kept: Kept, n: int) -> int:
    """GPUs of a node that reservations still keep."""
    total = 0
    for r in range(nodes.kept_lo[n], nodes.kept_hi[n]):
        if kept.active[r] > 0:
            if kept.gpus[r] < 0:
                return UNLIMITED
            total += max(kept.gpus[r] - kept.used[r], 0)
    return total


@leaf
def first_rules(
    nodes: Nodes, pools: Pools, kept: Kept, n: int, covered_all: int, base: Array, avail: Array
) -> None:
    """failed, drained, unknown and reserved of one node; what is left is available."""
    keep = kept_gpus(nodes, kept, n)
    for p in range(nodes.pool_lo[n], nodes.pool_hi[n]):
        free = pools.installed[p] - pools.held[p]
        base[p, :] = 0
        if nodes.failed[n] == 0 and nodes.covered[n] + covered_all > 0:
            base[p, C_ROGUE] = min(pools.rogue[p], free)
            free -= base[p, C_ROGUE]
        broken = free if nodes.failed[n] > 0 else min(pools.broken[p], free)
        base[p, C_FAILED] = broken
        free -= broken
        if nodes.drained[n] > 0:
            base[p, C_DRAINED] = free
            free = 0
        elif nodes.covered[n] + covered_all <= 0:
            base[p, C_UNKNOWN] = free
            free = 0
        taken = min(keep, free)
        keep -= taken
        base[p, C_RESERVED] = taken
        avail[p] = free - taken


@leaf
def headroom(base: Array, avail: Array, gpus: int) -> None:
    """Free GPUs on the lowest node names are kept empty, as many as the operator wants and there
    are."""
    for p in range(avail.shape[0]):
        if gpus <= 0:
            return
        taken = min(gpus, avail[p])
        base[p, C_RESERVED] += taken
        avail[p] -= taken
        gpus -= taken


@leaf
def by_profile(nodes: Nodes, pools: Pools, n: int, par: Array, base: Array, view: View) -> None:
    """stranded_cpu and stranded_mem of one node by the demand profile."""
    free, gpus = ZERO, ZERO
    for p in range(nodes.pool_lo[n], nodes.pool_hi[n]):
        free += view.avail[p]
        gpus += pools.installed[p]
    use, cpu_binds = usable_gpus(nodes, n, gpus, free, par[P_CPU], par[P_MEM])
    low, _ = usable_gpus(nodes, n, gpus, free, par[P_CPU_LOW], par[P_MEM_LOW])
    high, _ = usable_gpus(nodes, n, gpus, free, par[P_CPU_HIGH], par[P_MEM_HIGH])
    view.node_free[n] = free
    for p in range(nodes.pool_lo[n], nodes.pool_hi[n]):
        there = view.avail[p]
        take = min(use, there)
        use -= take
        view.usable[p] = take
        base[p, C_CPU] = there - take if cpu_binds else 0
        base[p, C_MEM] = 0 if cpu_binds else there - take
        take = min(low, there)
        low -= take
        base[p, C_LOW] = there - take
        take = min(high, there)
        high -= take
        base[p, C_HIGH] = there - take


@leaf
def emit(out: Array, n: int, where: Array, code: int, gpus: int, job: int, ripe: int) -> int:
    """Append a segment of pool and time ``where``; the new number of segments."""
    out[n, 0], out[n, 1], out[n, 2] = where[0], where[1], where[2]
    out[n, 3], out[n, 4], out[n, 5], out[n, 6] = code, gpus, job, ripe
    return n + 1


@leaf
def flush(out: Array, n: int, where: Array, base: Array, usable: Array, claims: Claims) -> int:
    """Write what a pool was over its time; the new number of segments."""
    p = where[0]
    if where[1] >= where[2]:
        return n
    for code in range(BASE):
        if base[p, code] > 0:
            n = emit(out, n, where, code, base[p, code], NO_JOB, ZERO)
    rest = usable[p]
    for k in range(claims.n[p]):
        gpus = claims.gpus[p, k]
        code = claims.code[p, k]
        n = emit(out, n, where, code, gpus, claims.job[p, k], claims.ripe[p, k])
        if code != C_FILLABLE:
            rest -= gpus
    if rest > 0:
        n = emit(out, n, where, FREE, rest, NO_JOB, ZERO)
    return n
