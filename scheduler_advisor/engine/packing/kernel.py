"""The packing loop: one pod after another, none ever leaves.

Scores live in one tournament tree per pod kind. A log of the nodes that took a pod tells each kind,
when its next pod comes, which of its scores are out of date: about 25 evaluations per pod on a
cluster of 1,213 nodes in place of 1,213.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler_advisor.engine.packing import tree
from scheduler_advisor.engine.packing.compiled import driver, leaf
from scheduler_advisor.engine.packing.devices import drawn, shift, tightest
from scheduler_advisor.engine.packing.fragmentation import unusable
from scheduler_advisor.engine.packing.policy import FGD, FGD_EXACT, RANDOM
from scheduler_advisor.engine.packing.scores import (
    Largest,
    fits,
    least_growth,
    node_score,
    shape_tag,
)
from scheduler_advisor.engine.packing.shapes import MILLI, Floats, Ints, Kinds, State
from scheduler_advisor.engine.packing.typical import Typical

FIRST, MOST_PACKED, EMPTIEST = 0, 1, 2
"""How the key orders nodes of equal score before the lower row wins."""


class Tables(NamedTuple):
    """The kernel's own memory: scores by kind, and the log of changed nodes."""

    keys: Ints
    tied: Ints
    node_class: Ints
    frag: Ints
    log: Ints
    last_change: Ints
    seen: Ints
    """How far in the log each kind's tree is up to date; -1 = not built."""


class Placed(NamedTuple):
    """What came out, by pod: node row or -1, GPU mask; and F's numerator before and after each."""

    node: Ints
    gpus: Ints
    frag: Ints


@leaf
def node_key(
    policy: int,
    rank: int,
    typical: Typical,
    kinds: Kinds,
    k: int,
    state: State,
    n: int,
    frag: Ints,
    largest: Largest,
) -> int:
    """The node's key in the tree of kind ``k``: its score, then how full it is; -1 = no fit."""
    if not fits(kinds, k, state, n):
        return -1
    score = node_score(policy, typical, kinds, k, state, n, frag[n], largest)
    if rank == FIRST:
        return score
    idle = 0
    for g in range(state.gpus[n]):
        idle += state.free[n, g]
    most = largest.gpu_milli
    return score * (most + 1) + (most - idle if rank == MOST_PACKED else idle)


@leaf
def bring_up_to_date(
    policy: int,
    rank: int,
    typical: Typical,
    kinds: Kinds,
    k: int,
    state: State,
    tables: Tables,
    logged: int,
    largest: Largest,
) -> int:
    """Refresh the tree of kind ``k`` after ``logged`` placements; return the scores computed."""
    keys = tables.keys
    tied = tables.tied
    computed = 0
    if tables.seen[k] < 0:
        half = keys.shape[1] // 2
        for n in range(len(state.cpu)):
            like = tables.node_class[n]
            if like < n and tables.last_change[n] < 0 and tables.last_change[like] < 0:
                keys[k, half + n] = keys[k, half + like]
                continue
            keys[k, half + n] = node_key(
                policy, rank, typical, kinds, k, state, n, tables.frag, largest
            )
            computed += 1
        tree.rebuild(keys, tied, k)
    else:
        for at in range(tables.seen[k], logged):
            n = tables.log[at]
            if tables.last_change[n] == at:  # an earlier entry of the same node is out of date
                key = node_key(policy, rank, typical, kinds, k, state, n, tables.frag, largest)
                tree.put(keys, tied, k, n, key)
                computed += 1
    tables.seen[k] = logged
    return computed


@leaf
def devices_for(
    policy: int,
    typical: Typical,
    kinds: Kinds,
    k: int,
    state: State,
    n: int,
    frag: int,
    most: int,
    draw: float,
) -> int:
    """The GPUs of node ``n`` that the pod takes, as a mask."""
    need = kinds.gpus[k]
    milli = kinds.milli[k]
    if need == 0:
        return 0
    if need == 1 and milli < MILLI:
        if policy == RANDOM:
            return drawn(state.free, n, state.gpus[n], milli, draw)
        if policy in (FGD, FGD_EXACT):
            return least_growth(policy == FGD_EXACT, typical, kinds, k, state, n, frag, most)[1]
    return tightest(state.free, n, state.gpus[n], need, milli)


@driver
def pack_all(
    policy: int,
    rank: int,
    kind: Ints,
    kinds: Kinds,
    typical: Typical,
    state: State,
    tables: Tables,
    largest: Largest,
    draws: Floats,
    out: Placed,
) -> int:
    """Place every pod in order, filling ``out``; return how many node scores were computed.

    ``draws``: two uniform numbers in [0, 1) per pod, for random ties and random GPUs.
    """
    at_random = tables.tied.shape[1] > 0
    total = 0
    for n in range(len(state.cpu)):
        tables.frag[n] = unusable(
            typical, state.cpu[n], state.free, n, state.gpus[n], state.model[n]
        )
        total += tables.frag[n]
    out.frag[0] = total
    logged = 0
    computed = 0
    for pod in range(len(kind)):
        k = kind[pod]
        computed += bring_up_to_date(
            policy, rank, typical, kinds, k, state, tables, logged, largest
        )
        keys = tables.keys
        if keys[k, 1] >= 0:
            if at_random:
                n = tree.drawn_best(keys, tables.tied, k, draws[pod, 0])
            else:
                n = tree.first_best(keys, k)
            mask = devices_for(
                policy,
                typical,
                kinds,
                k,
                state,
                n,
                tables.frag[n],
                largest.gpu_milli,
                draws[pod, 1],
            )
            state.cpu[n] -= kinds.cpu[k]
            state.mem[n] -= kinds.mem[k]
            shift(state.free, n, state.gpus[n], mask, -kinds.milli[k])
            state.tags[n] |= shape_tag(kinds, k)
            total -= tables.frag[n]
            tables.frag[n] = unusable(
                typical, state.cpu[n], state.free, n, state.gpus[n], state.model[n]
            )
            total += tables.frag[n]
            tables.log[logged] = n
            tables.last_change[n] = logged
            logged += 1
            out.node[pod] = n
            out.gpus[pod] = mask
        out.frag[pod + 1] = total
    return computed
