"""The main loop of the sweep: apply the events of one instant, judge, write what changed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from analytics.ledger.kernel.fill import Running, fill
from analytics.ledger.kernel.state import (
    BASE,
    BROKEN,
    COVERED,
    COVERED_ALL,
    CPU,
    CPU_TOTAL,
    DRAINED,
    FAILED,
    HELD,
    INSTALLED,
    LIMITED,
    MEM,
    MEM_TOTAL,
    P_HEADROOM,
    P_PASS,
    PARAMETERS,
    PENDING,
    PRIORITY,
    RESERVED,
    RESERVED_USED,
    ROGUE,
    RUNS,
    Array,
    Claims,
    Jobs,
    Kept,
    Nodes,
    Pools,
    View,
    by_profile,
    first_rules,
    flush,
    headroom,
)
from analytics.ledger.kernel.walk import drop_job, placeable, put_job, walk


class Events(NamedTuple):
    """What changes when, in order of time."""

    t: Array
    kind: Array
    idx: Array
    val: Array


class World(NamedTuple):
    """The state that events change."""

    nodes: Nodes
    pools: Pools
    kept: Kept
    kept_node: Array
    jobs: Jobs
    allowed: Array
    parameters: Array
    running: Running


@njit(cache=True)
def _apply(world: World, kind: int, i: int, val: int, dirty: Array) -> None:
    """One event on a node, pool or reservation."""
    nodes, pools, kept = world.nodes, world.pools, world.kept
    n = i
    if kind == INSTALLED:
        pools.installed[i] += val
        n = pools.node[i]
    elif kind == HELD:
        pools.held[i] += val
        n = pools.node[i]
    elif kind == ROGUE:
        pools.rogue[i] += val
        n = pools.node[i]
    elif kind == BROKEN:
        pools.broken[i] += val
        n = pools.node[i]
    elif kind == CPU:
        nodes.cpu_used[i] += val
    elif kind == MEM:
        nodes.mem_used[i] += val
    elif kind == CPU_TOTAL:
        nodes.cpu_total[i] = val
    elif kind == MEM_TOTAL:
        nodes.mem_total[i] = val
    elif kind == FAILED:
        nodes.failed[i] += val
    elif kind == DRAINED:
        nodes.drained[i] += val
    elif kind == COVERED:
        nodes.covered[i] += val
    elif kind == RESERVED:
        kept.active[i] += val
        n = world.kept_node[i]
    else:
        kept.used[i] += val
        n = world.kept_node[i]
    dirty[n] = 1


@njit(cache=True)
def _differ(a: Claims, b: Claims, p: int) -> bool:
    if a.n[p] != b.n[p]:
        return True
    for k in range(a.n[p]):
        if (
            a.code[p, k] != b.code[p, k]
            or a.gpus[p, k] != b.gpus[p, k]
            or a.job[p, k] != b.job[p, k]
            or a.ripe[p, k] != b.ripe[p, k]
        ):
            return True
    return False


@njit(cache=True)
def _copy(source: Claims, target: Claims, p: int) -> None:
    target.n[p] = source.n[p]
    for k in range(source.n[p]):
        target.code[p, k] = source.code[p, k]
        target.gpus[p, k] = source.gpus[p, k]
        target.job[p, k] = source.job[p, k]
        target.ripe[p, k] = source.ripe[p, k]


@njit(cache=True)
def _rebase(
    world: World, par: Array, covered_all: int, dirty: Array, base: Array, view: View
) -> None:
    """Judge the nodes that changed by every rule up to the demand profile."""
    wanted = par[P_HEADROOM]
    for n in range(dirty.shape[0]):
        if dirty[n] or wanted > 0:
            first_rules(world.nodes, world.pools, world.kept, n, covered_all, base, view.avail)
    if wanted > 0:
        headroom(base, view.avail, wanted)
    for n in range(dirty.shape[0]):
        if dirty[n] or wanted > 0:
            by_profile(world.nodes, world.pools, n, par, base, view)


@njit(cache=True)
def new_claims(pools: int, width: int) -> Claims:
    shape = (pools, width)
    return Claims(
        np.zeros(pools, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64),
        np.zeros(shape, np.int64), np.zeros(shape, np.int64),
    )  # fmt: skip


@njit(cache=True)
def sweep(world: World, events: Events, since: int, until: int, width: int) -> Array:
    """Segments over ``[since, until)``; events may begin before it to bring the state about.

    ``width`` = the most claims that a pool can carry (twice its GPUs).
    """
    pools = world.pools.node.shape[0]
    nodes = world.nodes.failed.shape[0]
    base = np.zeros((pools, BASE), np.int64)
    old_base = np.zeros((pools, BASE), np.int64)
    old_usable = np.zeros(pools, np.int64)
    started = np.full(pools, since, np.int64)
    view = View(
        np.zeros(pools, np.int64), np.zeros(pools, np.int64), np.zeros(pools, np.int64),
        np.zeros(pools, np.int64), np.zeros(nodes, np.int64), world.allowed,
    )  # fmt: skip
    now, then = new_claims(pools, width), new_claims(pools, width)
    dirty = np.ones(nodes, np.int64)
    queue = np.zeros(max(world.jobs.gpus.shape[0], 1), np.int64)
    waiting, covered_all, judged, row = 0, 0, 0, 0
    out, n = np.empty((1024, 7), np.int64), 0
    e, total = 0, events.t.shape[0]
    while e < total and events.t[e] < until:
        t = events.t[e]
        while e < total and events.t[e] == t:
            kind, i, val = events.kind[e], events.idx[e], events.val[e]
            e += 1
            if kind == PENDING:
                if val > 0:
                    waiting = put_job(queue, waiting, world.jobs, i)
                    world.jobs.placeable[i] = -1
                else:
                    waiting = drop_job(queue, waiting, i)
            elif kind == PRIORITY:
                found = waiting
                waiting = drop_job(queue, waiting, i)
                world.jobs.priority[i] = val
                if found > waiting:
                    waiting = put_job(queue, waiting, world.jobs, i)
            elif kind == LIMITED:
                world.jobs.limited[i] = val
            elif kind == COVERED_ALL:
                covered_all += val
                dirty[:] = 1
            elif kind == RUNS:
                world.running.live[i] += val
            elif kind == PARAMETERS:
                row = i
                dirty[:] = 1
            else:
                _apply(world, kind, i, val, dirty)
                if kind == INSTALLED or kind == CPU_TOTAL or kind == MEM_TOTAL:
                    world.jobs.placeable[:] = -1
        par = world.parameters[row]
        _rebase(world, par, covered_all, dirty, base, view)
        judged += 1
        for p in range(pools):
            now.n[p] = 0
        if waiting > 0:
            placeable(world.nodes, world.pools, world.jobs, queue, waiting, view.allowed)
            line = (queue, waiting)
            moment = (t, judged, par[P_PASS])
            walk(world.nodes, world.pools, world.jobs, line, view, now, moment)
            fill(world.nodes, world.pools, world.jobs, line, view, now, world.running, t)
        for p in range(pools):
            if (
                dirty[world.pools.node[p]]
                or not np.array_equal(base[p], old_base[p])
                or _differ(now, then, p)
            ):
                t0 = max(started[p], since)
                out, n = flush(out, n, p, t0, t, old_base, old_usable[p], then)
                started[p] = t
                old_base[p] = base[p]
                old_usable[p] = view.usable[p]
                _copy(now, then, p)
        dirty[:] = 0
    for p in range(pools):
        out, n = flush(out, n, p, max(started[p], since), until, old_base, old_usable[p], then)
    return out[:n]


__all__ = ["RESERVED_USED", "Events", "World", "sweep"]
