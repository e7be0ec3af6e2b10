"""Placing by the network, or by the nodes alone, in one call for drivers."""

from __future__ import annotations

from scheduler_advisor.engine.live.dissolved import dissolved
from scheduler_advisor.engine.parts.gang import place_gang
from scheduler_advisor.engine.parts.net import Net
from scheduler_advisor.engine.placing import place
from scheduler_advisor.engine.stood import put_back, stood
from scheduler_advisor.engine.world import S_GPU, Rules, World


@dissolved
def place_in_network(
    w: World, net: Net, rules: Rules, by_network: int, job: int, now: int, stamp: int, guard: int
) -> int:
    """`placing.place`; gangs of whole GPUs by the network where the policy says so."""
    if by_network != 0 and w.shapes[w.rows.shape[job], S_GPU] != 0:
        if stood(w.rows, w.book, job, guard) and put_back(
            w.nodes, w.buckets, w.shapes, w.rows, w.book, rules, job
        ) == 1:  # fmt: skip
            return 1
        return place_gang(
            w.nodes, w.buckets, w.shadow, w.shapes, w.classes, w.held, w.rows, w.book, rules, net,
            job, now, stamp, guard,
        )  # fmt: skip
    return place(
        w.nodes, w.buckets, w.shadow, w.shapes, w.classes, w.held, w.rows, w.runs, w.book, rules,
        job, now, stamp, guard,
    )  # fmt: skip
