"""When so many GPUs of a node are free in a plan, remembered until something is booked there.

Of each node and number of GPUs: the first gap in which so many are free, when the next one begins,
and since when they are free for ever. That answers most questions without walking along the steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.plan import NOWHEN
from scheduler_advisor.engine.profile import NO_STEP, P_GPU, P_NEXT, P_TIME, Profile

G_VERSION, G_SINCE, G_UNTIL, G_NEXT, G_LAST = 0, 1, 2, 3, 4
ENDLESS = 1 << 62


class Gaps(NamedTuple):
    """`table` is [GPUs, node] -> G_*; `version` of a node changes with what is booked there."""

    table: Any
    version: Any


def empty_gaps(most: int, nodes: int) -> Gaps:
    """Nothing is known yet."""
    return Gaps(np.zeros((most + 1, nodes, 5), np.int64), np.ones(nodes, np.int64))


@kernel
def note_gaps(gaps: Gaps, profile: Profile, node: int, gpus: int) -> None:
    """Walks along the node's steps and writes down its gaps."""
    steps = profile.steps
    first = until = following = last = NOWHEN
    seen = 0
    is_open = False
    step = profile.first[node]
    while step != NO_STEP:
        if is_open != (steps[step, P_GPU] >= gpus):
            is_open = not is_open
            at = steps[step, P_TIME]
            if is_open:
                seen += 1
                last = at
                if seen == 1:
                    first = at
                elif seen == 2:
                    following = at
            elif seen == 1:
                until = at
        step = steps[step, P_NEXT]
    if is_open and seen == 1:
        until = ENDLESS
    if not is_open:
        last = NOWHEN
    row = gaps.table[gpus, node]
    row[G_SINCE] = first
    row[G_UNTIL] = until
    row[G_NEXT] = following
    row[G_LAST] = last
    row[G_VERSION] = gaps.version[node]


@leaf
def gap_for(gaps: Gaps, profile: Profile, node: int, gpus: int, since: int, length: int) -> int:
    """The first instant from `since` at which so many GPUs are free on the node for `length`."""
    table = gaps.table
    if table[gpus, node, G_VERSION] != gaps.version[node]:
        note_gaps(gaps, profile, node, gpus)
    start = max(since, table[gpus, node, G_SINCE])
    if start + length <= table[gpus, node, G_UNTIL]:
        return start
    start = max(since, table[gpus, node, G_NEXT])
    if table[gpus, node, G_NEXT] == table[gpus, node, G_LAST]:
        return start
    return _later_gap(profile, node, gpus, start, length)


@kernel
def _later_gap(profile: Profile, node: int, gpus: int, start: int, length: int) -> int:
    steps = profile.steps
    at = profile.first[node]
    after = steps[at, P_NEXT]
    while after != NO_STEP and steps[after, P_TIME] <= start:
        at = after
        after = steps[at, P_NEXT]
    while True:
        if steps[at, P_GPU] < gpus:
            if after == NO_STEP:
                return NOWHEN
            start = steps[after, P_TIME]
        elif after == NO_STEP or steps[after, P_TIME] >= start + length:
            return start
        at = after
        after = steps[at, P_NEXT]
