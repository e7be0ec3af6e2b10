"""The network's arrays for a prepared replay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.parts.allreduce import PPM, STEP_COUNT, comm_of
from scheduler_advisor.engine.parts.gang import place_gang
from scheduler_advisor.engine.parts.net import ANYWHERE, IN_LEAF, Net, measured
from scheduler_advisor.engine.parts.places import narrowed_links, needs_of, places_of
from scheduler_advisor.engine.place import move_job
from scheduler_advisor.engine.policy import Placement, Policy
from scheduler_advisor.engine.prepare import Prepared, with_arrivals
from scheduler_advisor.engine.world import GROUP, S_CLASS, S_GPU, S_MILLI

Ints = NDArray[np.int64]
MIB = 1 << 20
FIRST_TRIAL = -(1 << 40)  # below the stamps of every other trial placement


def empty_net() -> Net:
    """For replays in which the network does not matter."""
    one, two = np.zeros(1, np.int64), np.zeros((1, 1), np.int64)
    real = np.zeros(1)
    return Net(
        of_group=two, spine_of=one, need=one, links=np.zeros((1, 2, STEP_COUNT)), comm=one,
        base=one, best=real, message=0.0, racks=0, slow=one, rooms=two, free=one, wide=two,
        wide_free=one, taken=one, holds=one, total=two, spine_start=one, leaf_list=one,
        group_start=one, group_list=one, node_gpus=one, node_islands=one, leaf_nodes=one,
        spine_leaves=one, most=one, least=one, rate=real, hop=real,
    )  # fmt: skip


def with_net(ready: Prepared, jobs: Jobs, cluster: Cluster, policy: Policy) -> tuple[Prepared, Net]:
    """The replay with jobs marked unplaceable that no domain they require could ever hold, with
    run times of its own to stretch, and its network."""
    rows = ready.world.rows
    world = ready.world._replace(rows=rows._replace(run=jobs.run.copy(), shape=rows.shape.copy()))
    ready = replace(ready, world=world, unplaceable=ready.unplaceable.copy())
    net = _net(ready, jobs, cluster, policy)
    hopeless = _best_placements(ready, net, policy)
    world.rows.shape[hopeless] = -1
    ready.unplaceable[hopeless] = True
    return replace(ready, world=with_arrivals(world)), net


def _net(ready: Prepared, jobs: Jobs, cluster: Cluster, policy: Policy) -> Net:
    places = places_of(cluster, policy)
    assert places is not None  # only asked for where the network matters
    group = ready.world.nodes.table[:, GROUP]
    first = np.unique(group, return_index=True)[1]
    of_group = np.ascontiguousarray(places[first, :4])
    leaves, spines = int(places[:, 0].max()) + 1, int(places[:, 1].max()) + 1
    spine_of = np.zeros(leaves, np.int64)
    spine_of[places[:, 0]] = places[:, 1]
    links = np.zeros((len(first), 2, STEP_COUNT))
    for at, node in enumerate(first.tolist()):
        row = narrowed_links(cluster.gpu_model[node], policy)
        links[at, 0], links[at, 1] = row.gb_s, row.us
    most, wide = ready.rules.most + 1, max(leaves, spines, 1)
    comm = comm_of(jobs.comm_milli.tolist(), jobs.gpus.tolist(), policy.topology.comm_milli)
    on = policy.topology.slowdown
    return Net(
        of_group=of_group,
        spine_of=spine_of,
        need=_needs(ready, jobs, cluster, policy),
        links=links,
        comm=np.array([milli if on else 0 for milli, _ in comm], np.int64),
        base=jobs.run.copy(),
        best=np.zeros(len(ready.world.shapes)),
        message=float(policy.topology.message_mib * MIB),
        racks=int(places[:, 2].max()) + 1,
        slow=np.full(len(jobs), PPM, np.int64),
        rooms=np.zeros((leaves, most), np.int64),
        free=np.zeros(leaves, np.int64),
        wide=np.zeros((wide, most), np.int64),
        wide_free=np.zeros(wide, np.int64),
        taken=np.zeros(leaves, np.int64),
        holds=np.zeros(leaves, np.int64),
        total=np.zeros((1, most), np.int64),
        spine_start=_starts(spine_of, spines),
        leaf_list=np.argsort(spine_of, kind="stable").astype(np.int64),
        group_start=_starts(of_group[:, IN_LEAF], leaves),
        group_list=np.argsort(of_group[:, IN_LEAF], kind="stable").astype(np.int64),
        node_gpus=np.zeros(len(cluster), np.int64),
        node_islands=np.zeros(len(cluster), np.int64),
        leaf_nodes=np.zeros(leaves, np.int64),
        spine_leaves=np.zeros(spines, np.int64),
        most=np.zeros(STEP_COUNT, np.int64),
        least=np.zeros(STEP_COUNT, np.int64),
        rate=np.zeros(STEP_COUNT),
        hop=np.zeros(STEP_COUNT),
    )


def _starts(of: Ints, count: int) -> Ints:
    """Where the members of each of `count` parts begin in a list part by part, and its length."""
    return np.concatenate(([0], np.cumsum(np.bincount(of, minlength=count)))).astype(np.int64)


def _needs(ready: Prepared, jobs: Jobs, cluster: Cluster, policy: Policy) -> Ints:
    needs = np.zeros(len(ready.world.classes.member), np.int64)
    per_job = needs_of(jobs, cluster, policy)
    if policy.placement is not Placement.TOPOLOGY:
        return needs  # nobody hears what a job requires of the network
    from scheduler_advisor.engine.groups import grouped

    needs[grouped(jobs, cluster, places_of(cluster, policy)).of_job] = per_job
    return needs


def _best_placements(ready: Prepared, net: Net, policy: Policy) -> Ints:
    """Places one job of each shape on the empty cluster: notes how long its all-reduce takes at
    best; returns the jobs whose required domain cannot hold them even then."""
    w, rules = ready.world, ready.rules
    of_job = w.rows.shape
    shapes, first = np.unique(of_job, return_index=True)
    need, hopeless = net.need.copy(), np.zeros(0, np.int64)
    stamp = FIRST_TRIAL
    for shape, job in zip(shapes.tolist(), first.tolist(), strict=True):
        if shape < 0 or w.shapes[shape, S_GPU] == 0 or w.shapes[shape, S_MILLI] != 0:
            continue
        for bound in (True, False):
            net.need[:] = need if bound else ANYWHERE
            stamp -= 1  # a node bears the mark of one trial alone
            placed = place_gang(
                w.nodes, w.buckets, w.shadow, w.shapes, w.classes, w.held, w.rows, w.book, rules,
                net, job, -(1 << 50), stamp, 0,
            )  # fmt: skip
            if placed == 1:
                net.best[shape] = measured(
                    w.nodes, net, w.shapes, w.rows, w.book, rules.shares, job
                )
                move_job(
                    w.nodes, w.buckets, w.shapes, w.rows, w.book, rules.most, rules.shares, job, 1
                )
                break
            if w.held.named[job] >= 0 or not bound:
                break
            if need[w.shapes[shape, S_CLASS]] != ANYWHERE:
                hopeless = np.append(hopeless, np.flatnonzero(of_job == shape))
                break
    net.need[:] = need
    return hopeless
