"""The state that the sweep changes, and the room that it works in: Python makes all of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analytics.ledger.kernel.fill import FillScratch, Later, Running
from analytics.ledger.kernel.state import BASE, Array, Claims, Jobs, Kept, Nodes, Pools, View


class Events(NamedTuple):
    """What changes when, in order of time."""

    t: Array
    kind: Array
    idx: Array
    val: Array


NEXT, WAITING, COVER, PASSES, ROW, DONE = range(6)  # of Scratch.at


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


class Scratch(NamedTuple):
    """What the loop remembers from one instant to the next, and room to work in.

    ``at`` = next event, jobs that wait, coverage of all, passes, row of parameters, whether done.
    ``where`` = a pool and its time.
    """

    at: Array
    where: Array
    base: Array
    old_base: Array
    old_usable: Array
    started: Array
    room: View
    now: Claims
    then: Claims
    dirty: Array
    queue: Array
    fill: FillScratch


def new_scratch(world: World, since: int, width: int) -> Scratch:
    pools, nodes = world.pools.node.shape[0], world.nodes.failed.shape[0]
    widest = int((world.nodes.pool_hi - world.nodes.pool_lo).max()) * width
    domains = max(int(world.pools.domain.max()), 0) + 1
    avail, usable, left, order = _zeros(4, pools)
    full, rest = _zeros(2, domains)
    (node_free,), (bucket,) = _zeros(1, nodes), _zeros(1, widest + 2)
    view = View(avail, usable, left, order, node_free, world.allowed, full, rest, bucket)
    return Scratch(
        at=np.zeros(6, np.int64),
        where=np.zeros(3, np.int64),
        base=np.zeros((pools, BASE), np.int64),
        old_base=np.zeros((pools, BASE), np.int64),
        old_usable=np.zeros(pools, np.int64),
        started=np.full(pools, since, np.int64),
        room=view,
        now=_claims(pools, width),
        then=_claims(pools, width),
        dirty=np.ones(nodes, np.int64),
        queue=np.zeros(max(world.jobs.gpus.shape[0], 1), np.int64),
        fill=FillScratch(_later(world, view), _later(world, view), *_zeros(3, pools)),
    )


def _zeros(count: int, size: int) -> list[Array]:
    return [np.zeros(size, np.int64) for _ in range(count)]


def _claims(pools: int, width: int) -> Claims:
    return Claims(*_zeros(1, pools), *(np.zeros((pools, width), np.int64) for _ in range(4)))


def _later(world: World, view: View) -> Later:
    pools, nodes = world.pools.node.shape[0], world.nodes.failed.shape[0]
    cpu, mem = _zeros(2, nodes)
    room = view._replace(left=np.zeros(pools, np.int64), order=np.arange(pools))
    return Later(world.nodes._replace(cpu_used=cpu, mem_used=mem), room)
