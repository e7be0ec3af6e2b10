"""The queue at one instant: which pending job keeps which free GPUs from being simply free."""

from __future__ import annotations

import numpy as np

from analytics.ledger.kernel.compiled import leaf
from analytics.ledger.kernel.state import (
    C_CPU_REQUEST,
    C_GANG,
    C_LIMIT,
    C_MEM_REQUEST,
    C_ORDER,
    C_SHAPE,
    C_TOPOLOGY,
    ZERO,
    Array,
    Claims,
    Jobs,
    Nodes,
    Pools,
    View,
)

# Which rules of a start count; typed, since numba compiles anew for every plain number.
CPU, MEM, TOPOLOGY = 1, 2, 4
ALL: Array = np.int64(7)
NOT_CPU: Array = np.int64(6)
NOT_MEM: Array = np.int64(5)
NOT_HOST: Array = np.int64(4)
NOT_TOPOLOGY: Array = np.int64(3)


@leaf
def _before(jobs: Jobs, a: int, b: int) -> bool:
    """Whether job ``a`` stands before job ``b``: priority, then eligible time, then name."""
    if jobs.priority[a] != jobs.priority[b]:
        return bool(jobs.priority[a] > jobs.priority[b])
    if jobs.eligible[a] != jobs.eligible[b]:
        return bool(jobs.eligible[a] < jobs.eligible[b])
    return a < b


@leaf
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


@leaf
def room_for(total: int, used: int, need: int) -> bool:
    """Whether the rest of a resource is enough; what is not known is."""
    return total < 0 or total - used >= need


@leaf
def fits(
    nodes: Nodes,
    pools: Pools,
    jobs: Jobs,
    j: int,
    view: View,
    n: int,
    rules: int,
) -> bool:
    """Whether job ``j`` could start on the unclaimed GPUs by the rules that count."""
    level = jobs.level[j] if rules & TOPOLOGY else -1
    domains = 1
    if level >= 0:
        for k in range(n):
            domains = max(domains, pools.domain[level, view.order[k]] + 1)
    full, rest = view.full, view.rest
    for k in range(domains):
        full[k], rest[k] = 0, 0
    for k in range(n):
        p = view.order[k]
        m = pools.node[p]
        left = view.left[p]
        if left == 0 or not view.allowed[jobs.group[j], p]:
            continue
        d = 0 if level < 0 else pools.domain[level, p]
        if d < 0:
            continue
        if rules & CPU and not room_for(nodes.cpu_total[m], nodes.cpu_used[m], jobs.cpu[j]):
            continue
        if rules & MEM and not room_for(nodes.mem_total[m], nodes.mem_used[m], jobs.mem[j]):
            continue
        full[d] += left >= jobs.per_node[j]
        rest[d] += left >= jobs.rest[j]
        if full[d] >= jobs.full[j] and (jobs.rest[j] == 0 or rest[d] > jobs.full[j]):
            return True
    return False


@leaf
def _verdict(nodes: Nodes, pools: Pools, jobs: Jobs, j: int, view: View, n: int, total: int) -> int:
    """Why job ``j`` does not run on what is unclaimed; -1 = its own limit, and it would not fit."""
    fit = total >= jobs.gpus[j] and fits(nodes, pools, jobs, j, view, n, ALL)
    if jobs.limited[j] > 0:
        return C_LIMIT if fit else -1
    if fit:
        return C_ORDER
    if total < jobs.gpus[j]:
        return C_GANG
    if jobs.level[j] >= 0 and fits(nodes, pools, jobs, j, view, n, NOT_TOPOLOGY):
        return C_TOPOLOGY
    if fits(nodes, pools, jobs, j, view, n, NOT_CPU):
        return C_CPU_REQUEST
    if fits(nodes, pools, jobs, j, view, n, NOT_MEM):
        return C_MEM_REQUEST
    if fits(nodes, pools, jobs, j, view, n, NOT_HOST):
        return C_CPU_REQUEST
    return C_SHAPE


@leaf
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


@leaf
def _line_up(pools: Pools, view: View) -> tuple[int, int]:
    """Order the pools with usable GPUs by (free GPUs on the node, node name); their number and
    GPUs."""
    n, total = 0, 0
    place = view.bucket
    for k in range(place.shape[0]):
        place[k] = 0
    for p in range(pools.node.shape[0]):
        view.left[p] = view.usable[p]
        if view.usable[p] > 0:
            place[view.node_free[pools.node[p]] + 1] += 1
            total += view.usable[p]
            n += 1
    for k in range(1, place.shape[0]):
        place[k] += place[k - 1]
    for p in range(pools.node.shape[0]):
        if view.usable[p] > 0:
            free = view.node_free[pools.node[p]]
            view.order[place[free]] = p
            place[free] += 1
    return n, total


@leaf
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
        total = ZERO
        for k in range(n):
            p = view.order[k]
            if view.allowed[jobs.group[j], p]:
                total += view.left[p]
        if total == 0:
            continue
        code = _verdict(nodes, pools, jobs, j, view, n, total)
        if code < 0:
            continue
        ripe = ZERO
        if code == C_ORDER:
            if jobs.fit_pass[j] != judged - 1:
                jobs.fit_since[j] = at
            jobs.fit_pass[j] = judged
            ripe = jobs.fit_since[j] + interval
        unclaimed -= _claim(jobs, j, view, n, claims, code, ripe)
