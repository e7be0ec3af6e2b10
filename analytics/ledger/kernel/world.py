"""The tables of the sweep as they are before the first event: Python makes all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from analytics.ledger.kernel import state as k


def new_world(given: dict[str, Any], classes: int) -> k.World:
    """The empty state.

    ``given``: node (per pool), domain (level x pool), kept, jobs, allowed, demand, running, events,
    targets, bounds, and `widest`, the most GPUs of a pool. ``classes``: columns of the posts.
    """
    node, jobs, running = given["node"], given["jobs"], given["running"]
    pools, count = node.shape[0], given["nodes"]
    # A pool has a claim per usable GPU at most, and one for what could be filled.
    width = given["widest"] + 1
    domains = max(int(given["domain"].max(initial=0)), 0) + 1
    groups, shapes = given["allowed"].shape[0], int(jobs[k.J_SHAPE].max(initial=0)) + 1
    per_node = np.bincount(node, minlength=1)
    bounds = given["bounds"]
    at, lists = _zeros(k.AT), _zeros(k.LISTS, max(pools, count))
    lists[k.T_DIRTY, :count], at[k.A_DIRTY] = np.arange(count), count
    return k.World(
        nodes=_nodes(node, given["kept"][k.K_NODE], count),
        pools=_pools(node, given["domain"], int(bounds[0])),
        kept=given["kept"],
        jobs=jobs,
        allowed=given["allowed"],
        demand=given["demand"],
        running=running,
        blocks=_zeros(running.shape[1] // k.BLOCK + 1),
        events=given["events"],
        base=_zeros(pools, 2, k.BASE),
        claims=_zeros(2, pools, width, 4),
        posts=_zeros(pools, bounds.shape[0] - 1, classes),
        causes=_zeros(pools, k.OPEN, 4),
        queue=_zeros(jobs.shape[1] + 1),
        counts=_zeros(4, domains),
        totals=_zeros(2, groups),
        bucket=_zeros(int(per_node.max()) * given["widest"] + 2),
        tried=_zeros(3, shapes) - 1,
        lists=lists,
        targets=given["targets"],
        bounds=bounds,
        at=at,
    )


def _zeros(*shape: int) -> k.Array:
    return np.zeros(shape, np.int64)


def _nodes(node: k.Array, kept: k.Array, count: int) -> k.Array:
    table = _zeros(k.NODE_ROWS, count)
    places = np.arange(count)
    table[k.N_CPU_TOTAL] = table[k.N_MEM_TOTAL] = -1
    table[k.N_DIRTY] = 1
    for lo, hi, of in (
        (k.N_POOL_LO, k.N_POOL_HI, node),
        (k.N_KEPT_LO, k.N_KEPT_HI, kept),
    ):
        table[lo] = np.searchsorted(of, places)
        table[hi] = np.searchsorted(of, places, "right")
    return table


def _pools(node: k.Array, domain: k.Array, since: int) -> k.Array:
    table = _zeros(k.POOL_ROWS, node.shape[0])
    table[k.P_NODE] = node
    table[k.P_STARTED] = since
    table[k.P_DOMAIN :] = domain
    return table
