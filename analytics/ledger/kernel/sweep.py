"""The main loop of the sweep: apply the events of one instant, judge, write what changed."""

from __future__ import annotations

import numpy as np

from analytics.ledger.kernel.compiled import driver, leaf
from analytics.ledger.kernel.fill import fill
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
    View,
    by_profile,
    first_rules,
    flush,
    headroom,
)
from analytics.ledger.kernel.walk import drop_job, placeable, put_job, walk
from analytics.ledger.kernel.world import (
    COVER,
    DONE,
    NEXT,
    PASSES,
    ROW,
    WAITING,
    Events,
    Scratch,
    World,
    new_scratch,
)


@leaf
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


@leaf
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


@leaf
def _copy(source: Claims, target: Claims, p: int) -> None:
    target.n[p] = source.n[p]
    for k in range(source.n[p]):
        target.code[p, k] = source.code[p, k]
        target.gpus[p, k] = source.gpus[p, k]
        target.job[p, k] = source.job[p, k]
        target.ripe[p, k] = source.ripe[p, k]


@leaf
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


@leaf
def _take_in(world: World, events: Events, e: int, s: Scratch) -> None:
    """Apply one event."""
    at, dirty = s.at, s.dirty
    kind, i, val = events.kind[e], events.idx[e], events.val[e]
    if kind == PENDING:
        if val > 0:
            at[WAITING] = put_job(s.queue, at[WAITING], world.jobs, i)
            world.jobs.placeable[i] = -1
        else:
            at[WAITING] = drop_job(s.queue, at[WAITING], i)
    elif kind == PRIORITY:
        found = at[WAITING]
        at[WAITING] = drop_job(s.queue, found, i)
        world.jobs.priority[i] = val
        if found > at[WAITING]:
            at[WAITING] = put_job(s.queue, at[WAITING], world.jobs, i)
    elif kind == LIMITED:
        world.jobs.limited[i] = val
    elif kind == COVERED_ALL:
        at[COVER] += val
        dirty[:] = 1
    elif kind == RUNS:
        world.running.live[i] += val
    elif kind == PARAMETERS:
        at[ROW] = i
        dirty[:] = 1
    else:
        _apply(world, kind, i, val, dirty)
        if kind == INSTALLED or kind == CPU_TOTAL or kind == MEM_TOTAL:
            world.jobs.placeable[:] = -1


@leaf
def _judge(world: World, t: int, s: Scratch) -> None:
    """What the queue makes of the GPUs that the base leaves."""
    now, waiting = s.now, s.at[WAITING]
    for p in range(now.n.shape[0]):
        now.n[p] = 0
    if waiting > 0:
        nodes, pools, jobs = world.nodes, world.pools, world.jobs
        placeable(nodes, pools, jobs, s.queue, waiting, s.room.allowed)
        line = (s.queue, waiting)
        moment = (t, s.at[PASSES], world.parameters[s.at[ROW], P_PASS])
        walk(nodes, pools, jobs, line, s.room, now, moment)
        fill(nodes, pools, jobs, line, s.room.avail, now, world.running, t, s.fill)


@leaf
def _write(s: Scratch, p: int, t: int, since: int, out: Array, n: int) -> int:
    """What pool ``p`` was until ``t``, from when it last changed."""
    s.where[0], s.where[1], s.where[2] = p, max(s.started[p], since), t
    return flush(out, n, s.where, s.old_base, s.old_usable, s.then)


@leaf
def _changed(s: Scratch, p: int) -> bool:
    for k in range(BASE):
        if s.base[p, k] != s.old_base[p, k]:
            return True
    return _differ(s.now, s.then, p)


@driver
def advance(world: World, events: Events, span: Array, s: Scratch, out: Array) -> int:
    """Go on until the events end or ``out`` is nearly full; the number of segments in ``out``.

    ``span`` = since, until, the most segments that one instant can end.
    """
    since, until, most = span[0], span[1], span[2]
    at, dirty = s.at, s.dirty
    pools = world.pools.node.shape[0]
    n, e, total = at[NEXT] * 0, at[NEXT], events.t.shape[0]
    while e < total and events.t[e] < until:
        if n + most > out.shape[0]:
            at[NEXT] = e
            return int(n)
        t = events.t[e]
        while e < total and events.t[e] == t:
            _take_in(world, events, e, s)
            e += 1
        _rebase(world, world.parameters[at[ROW]], at[COVER], dirty, s.base, s.room)
        at[PASSES] += 1
        _judge(world, t, s)
        for p in range(pools):
            if dirty[world.pools.node[p]] or _changed(s, p):
                n = _write(s, p, t, since, out, n)
                s.started[p] = t
                for k in range(BASE):
                    s.old_base[p, k] = s.base[p, k]
                s.old_usable[p] = s.room.usable[p]
                _copy(s.now, s.then, p)
        dirty[:] = 0
    at[NEXT] = e
    if n + most <= out.shape[0]:
        for p in range(pools):
            n = _write(s, p, until, since, out, n)
        at[DONE] = 1
    return int(n)


def sweep(world: World, events: Events, since: int, until: int, width: int) -> Array:
    """Segments over ``[since, until)``; events may begin before it to bring the state about.

    ``width`` = the most claims that a pool can carry (twice its GPUs).
    """
    scratch = new_scratch(world, since, width)
    most = world.pools.node.shape[0] * (BASE + width + 1)
    out = np.empty((2 * most + 4096, 7), np.int64)
    found = []
    while not scratch.at[DONE]:
        n = advance(world, events, np.array([since, until, most]), scratch, out)
        found.append(out[:n].copy())
    return np.concatenate(found)


__all__ = ["RESERVED_USED", "Events", "World", "sweep"]
