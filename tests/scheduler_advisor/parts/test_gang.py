"""A gang lies on the fewest nodes, in the narrowest part of the network: as told slowly, and as
every placement tried one by one says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_advisor.engine import Cluster, Jobs, Placement, Policy, PolicyError
from scheduler_advisor.engine.parts.allreduce import allreduce_s, spread_of
from scheduler_advisor.engine.parts.gang import place_gang
from scheduler_advisor.engine.parts.levels import tree_of
from scheduler_advisor.engine.parts.net import measured
from scheduler_advisor.engine.parts.places import narrowed_links
from scheduler_advisor.engine.parts.reference_gang import Site, gang_nodes
from scheduler_advisor.engine.parts.with_net import with_net
from scheduler_advisor.engine.place import move_job, take_plain
from scheduler_advisor.engine.prepare import prepare
from scheduler_advisor.engine.world import GPU

NETWORK = Policy(placement=Placement.TOPOLOGY).with_values({"topology.slowdown": "true"})
NEEDS = ("", "node", "leaf", "spine", "block")


class Board:
    """A cluster with some GPUs taken, on which one job of each kind is placed and lifted off."""

    def __init__(self, leaves, free, kinds, need="", cpu=0, policy=NETWORK):
        size = len(free)
        self.cluster = Cluster.build(
            gpus=[8] * size,
            leaf=[f"l{one}" for one in leaves],
            spine=[f"s{one // 2}" for one in leaves],
            rack=[f"r{one // 3}" for one in leaves],
            cpu_milli=[16] * size,
            gpu_model=["H100"] * size,
        )
        count = len(kinds)
        self.jobs = Jobs.build(
            submit=[0] * count,
            run=[10] * count,
            gpus=[tasks * each for tasks, each in kinds],
            tasks=[tasks for tasks, _ in kinds],
            gpus_per_task=[each for _, each in kinds],
            cpu_milli=[cpu] * count,
            topology=[f"required:{need}" if need else ""] * count,
        )
        ready = prepare(self.jobs, self.cluster, policy)
        ready, self.net = with_net(ready, self.jobs, self.cluster, policy)
        self.world, self.rules, self.ready = ready.world, ready.rules, ready
        self.need = need
        for node, left in enumerate(free):
            take_plain(self.world.nodes, self.world.buckets, 8, node, 8 - left, 0, 0)
        self.free = dict(enumerate(free))

    def place(self, job):
        w = self.world
        if w.rows.shape[job] < 0:
            return None
        found = place_gang(
            w.nodes, w.buckets, w.shadow, w.shapes, w.classes, w.held, w.rows, w.book, self.rules,
            self.net, job, 0, job + 1, 0,
        )  # fmt: skip
        if found != 1:
            return None
        first = w.rows.place[job]
        nodes = w.book.node[first : first + self.jobs.tasks[job]].tolist()
        self.took = measured(w.nodes, self.net, w.shapes, w.rows, w.book, self.rules.shares, job)
        move_job(w.nodes, w.buckets, w.shapes, w.rows, w.book, 8, self.rules.shares, job, 1)
        assert w.nodes.table[:, GPU].tolist() == list(self.free.values())
        return nodes

    def site(self):
        tree = tree_of(self.cluster)
        return Site(
            self.free,
            *(dict(enumerate(one.tolist())) for one in (tree.leaf, tree.spine, tree.rack)),
        )

    def rooms(self, each, cpu):
        most = 16 // cpu if cpu else 8
        return {node: min(left // each, most) for node, left in self.free.items()}


boards = st.tuples(
    st.lists(st.integers(0, 5), min_size=1, max_size=9),
    st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from([1, 2, 3, 4, 8])), min_size=1, max_size=3
    ),
    st.sampled_from(NEEDS),
    st.sampled_from([0, 4, 9]),
    st.integers(0, 10_000),
)


@settings(max_examples=150, deadline=None)
@given(boards)
def test_the_compiled_search_chooses_the_nodes_that_the_slow_one_does(drawn):
    leaves, kinds, need, cpu, seed = drawn
    free = np.random.default_rng(seed).choice([0, 1, 2, 4, 6, 8], len(leaves)).tolist()
    board = Board(leaves, free, kinds, need, cpu)
    for job, (tasks, each) in enumerate(kinds):
        slow = gang_nodes(board.site(), board.rooms(each, cpu), tasks, need)
        fast = board.place(job)
        assert fast == slow, (leaves, free, tasks, each, need, cpu)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=6),
    st.integers(1, 6),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(0, 10_000),
)
def test_no_other_placement_uses_fewer_nodes_and_none_with_as_few_lies_narrower(
    leaves, tasks, each, seed
):
    free = np.random.default_rng(seed).choice([0, 2, 4, 8], len(leaves)).tolist()
    board = Board(leaves, free, [(tasks, each)])
    nodes = board.place(0)
    rooms, site = board.rooms(each, 0), board.site()
    able = [
        chosen
        for count in range(1, len(free) + 1)
        for chosen in itertools.combinations(range(len(free)), count)
        if sum(rooms[node] for node in chosen) >= tasks and all(rooms[node] for node in chosen)
    ]
    assert (nodes is None) == (not able)
    if nodes is None:
        return
    fewest = min(len(chosen) for chosen in able)
    as_few = [chosen for chosen in able if len(chosen) == fewest]
    assert len(set(nodes)) == fewest or len({rooms[n] for n in range(len(free)) if rooms[n]}) > 1
    one_leaf = [c for c in as_few if len({site.leaf[node] for node in c}) == 1]
    if one_leaf:
        assert len({site.leaf[node] for node in nodes}) == 1
    if len({room for room in rooms.values() if room}) == 1:
        fewest_leaves = min(len({site.leaf[node] for node in c}) for c in as_few)
        narrow = min(
            (len({site.spine[node] for node in c}), len({site.leaf[node] for node in c}))
            for c in as_few
        )
        got = (len({site.spine[n] for n in nodes}), len({site.leaf[n] for n in nodes}))
        assert got == narrow or got[1] == fewest_leaves


@settings(max_examples=80, deadline=None)
@given(boards)
def test_the_compiled_all_reduce_takes_exactly_as_long_as_the_plain_one(drawn):
    leaves, kinds, _, _, seed = drawn
    free = np.random.default_rng(seed).choice([2, 4, 6, 8], len(leaves)).tolist()
    policy = NETWORK.with_values({"topology.oversubscription": 1 + seed % 4})
    board = Board(leaves, free, kinds, policy=policy)
    tree, links = tree_of(board.cluster), narrowed_links("H100", policy)
    for job, (_, each) in enumerate(kinds):
        nodes = board.place(job)
        if nodes is not None:
            spread = spread_of((tree.spine[n], tree.leaf[n], n, 0, each) for n in nodes)
            assert board.took == allreduce_s(spread, links, 1024 * 2**20)


def test_a_gang_that_no_domain_it_requires_could_ever_hold_is_unplaceable():
    board = Board([0, 0, 1, 1], [8, 8, 8, 8], [(2, 8), (3, 8)], need="leaf")
    assert board.ready.unplaceable.tolist() == [False, True]
    assert board.place(0) == [0, 1]


def test_a_level_that_no_node_names_is_refused():
    cluster = Cluster.uniform(2, 8)
    jobs = Jobs.build(submit=[0], run=[1], gpus=[8], tasks=[1], topology=["required:leaf"])
    with pytest.raises(PolicyError, match="column leaf"):
        with_net(prepare(jobs, cluster, NETWORK), jobs, cluster, NETWORK)
