"""The queue at one instant: which pending job keeps which free GPUs from being simply free."""

from __future__ import annotations

import numpy as np
from numba import njit

from analytics.ledger.kernel.state import (
    C_CPU_REQUEST,
    C_GANG,
    C_LIMIT,
    C_MEM_REQUEST,
    C_ORDER,
    C_SHAPE,
    C_TOPOLOGY,
    Array,
    Claims,
    Jobs,
    Nodes,
    Pools,
    View,
)


@njit(cache=True)
def _before(jobs: Jobs, a: int, b: int) -> bool:
    """Whether job ``a`` stands before job ``b``: priority, then eligible time, then name."""
    if jobs.priority[a] != jobs.priority[b]:
        return bool(jobs.priority[a] > jobs.priority[b])
    if jobs.eligible[a] != jobs.eligible[b]:
        return bool(jobs.eligible[a] < jobs.eligible[b])
    return a < b


@njit(cache=True)
def put_job(queue: Array, n: int, jobs: Jobs, j: int) -> int:
    """Insert ``j`` into the ordered queue; return its new length."""
    lo, hi = 0, n
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


@njit(cache=True)
def drop_job(queue: Array, n: int, j: int) -> int:
    """Take ``j`` out of the queue, if it is there; return the new length."""
    for k in range(n):
        if queue[k] == j:
            for m in range(k, n - 1):
                queue[m] = queue[m + 1]
            return n - 1
    return n


@njit(cache=True)
def placeable(nodes: Nodes, pools: Pools, jobs: Jobs, queue: Array, n: int, allowed: Array) -> None:
    """Find out for jobs that were not judged yet whether the empty cluster could take them."""
    for q in range(n):
        j = queue[q]
        if jobs.placeable[j] >= 0:
            continue
        full, rest = 0, 0
        for p in range(pools.node.shape[0]):
            m = pools.node[p]
            if not allowed[jobs.group[j], p]:
                continue
            if 0 <= nodes.cpu_total[m] < jobs.cpu[j] or 0 <= nodes.mem_total[m] < jobs.mem[j]:
                continue
            full += pools.installed[p] >= jobs.per_node[j]
            rest += pools.installed[p] >= jobs.rest[j]
        enough = full >= jobs.full[j] and (jobs.rest[j] == 0 or rest > jobs.full[j])
        jobs.placeable[j] = 1 if enough else 0


@njit(cache=True)
def room_for(total: int, used: int, need: int) -> bool:
    """Whether the rest of a resource is enough; what is not known is."""
    return total < 0 or total - used >= need


@njit(cache=True)
def fits(
    nodes: Nodes,
    pools: Pools,
    jobs: Jobs,
    j: int,
    view: View,
    n: int,
    rules: tuple[bool, bool, bool],
) -> bool:
    """Whether job ``j`` could start on the unclaimed GPUs; rules = (CPU, memory, topology)
    count."""
    with_cpu, with_mem, with_topology = rules
    level = jobs.level[j] if with_topology else -1
    domains = 1
    if level >= 0:
        for k in range(n):
            domains = max(domains, pools.domain[level, view.order[k]] + 1)
    full = np.zeros(domains, np.int64)
    rest = np.zeros(domains, np.int64)
    for k in range(n):
        p = view.order[k]
        m = pools.node[p]
        left = view.left[p]
        if left == 0 or not view.allowed[jobs.group[j], p]:
            continue
        d = 0 if level < 0 else pools.domain[level, p]
        if d < 0:
            continue
        if with_cpu and not room_for(nodes.cpu_total[m], nodes.cpu_used[m], jobs.cpu[j]):
            continue
        if with_mem and not room_for(nodes.mem_total[m], nodes.mem_used[m], jobs.mem[j]):
            continue
        full[d] += left >= jobs.per_node[j]
        rest[d] += left >= jobs.rest[j]
        if full[d] >= jobs.full[j] and (jobs.rest[j] == 0 or rest[d] > jobs.full[j]):
            return True
    return False


@njit(cache=True)
def _verdict(nodes: Nodes, pools: Pools, jobs: Jobs, j: int, view: View, n: int, total: int) -> int:
    """Why job ``j`` does not run on what is unclaimed; -1 = its own limit, and it would not fit."""
    fit = total >= jobs.gpus[j] and fits(nodes, pools, jobs, j, view, n, (True, True, True))
    if jobs.limited[j] > 0:
        return C_LIMIT if fit else -1
    if fit:
        return C_ORDER
    if total < jobs.gpus[j]:
        return C_GANG
    if jobs.level[j] >= 0 and fits(nodes, pools, jobs, j, view, n, (True, True, False)):
        return C_TOPOLOGY
    if fits(nodes, pools, jobs, j, view, n, (False, True, True)):
        return C_CPU_REQUEST
    if fits(nodes, pools, jobs, j, view, n, (True, False, True)):
        return C_MEM_REQUEST
    if fits(nodes, pools, jobs, j, view, n, (False, False, True)):
        return C_CPU_REQUEST
    return C_SHAPE


@njit(cache=True)
def _claim(jobs: Jobs, j: int, view: View, n: int, claims: Claims, code: int, ripe: int) -> int:
    """Take up to the job's GPUs, fullest node first; return how many."""
    need = jobs.gpus[j]
    for k in range(n):
        p = view.order[k]
        if need == 0:
            break
        take = min(need, view.left[p])
        if take == 0 or not view.allowed[jobs.group[j], p]:
            continue
        place = claims.n[p]
        claims.code[p, place] = code
        claims.gpus[p, place] = take
        claims.job[p, place] = j
        claims.ripe[p, place] = ripe
        claims.n[p] = place + 1
        view.left[p] -= take
        need -= take
    return int(jobs.gpus[j] - need)


@njit(cache=True)
def _line_up(pools: Pools, view: View) -> tuple[int, int]:
    """Order the pools with usable GPUs by (free GPUs on the node, node name); their number and
    GPUs."""
    n, total = 0, 0
    size = pools.node.shape[0]
    keys = np.empty(size, np.int64)
    places = np.empty(size, np.int64)
    for p in range(size):
        view.left[p] = view.usable[p]
        if view.usable[p] > 0:
            keys[n] = view.node_free[pools.node[p]] * size + p
            places[n] = p
            total += view.usable[p]
            n += 1
    ranks = np.argsort(keys[:n])
    for k in range(n):
        view.order[k] = places[ranks[k]]
    return n, total


@njit(cache=True)
def walk(
    nodes: Nodes,
    pools: Pools,
    jobs: Jobs,
    queue: tuple[Array, int],
    view: View,
    claims: Claims,
    moment: tuple[int, int, int],
) -> None:
    """Each pending job in order tests and claims; ``moment`` = (time, number of the pass, pass
    interval)."""
    at, judged, interval = moment
    n, unclaimed = _line_up(pools, view)
    for q in range(queue[1]):
        if unclaimed == 0:
            return
        j = queue[0][q]
        if jobs.placeable[j] == 0:
            continue
        total = 0
        for k in range(n):
            p = view.order[k]
            if view.allowed[jobs.group[j], p]:
                total += view.left[p]
        if total == 0:
            continue
        code = _verdict(nodes, pools, jobs, j, view, n, total)
        if code < 0:
            continue
        ripe = 0
        if code == C_ORDER:
            if jobs.fit_pass[j] != judged - 1:
                jobs.fit_since[j] = at
            jobs.fit_pass[j] = judged
            ripe = jobs.fit_since[j] + interval
        unclaimed -= _claim(jobs, j, view, n, claims, code, ripe)
