"""What will be free on each node, as steps in time: the memory of conservative backfill.

Each node has a list of steps in order; a step holds from its time until the next one's. The first
step of a node holds "since ever". All steps live in one table, unused ones in a list of their own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.world import ALL_CPU, ALL_GPU, ALL_MEM, Nodes

P_TIME, P_NEXT, P_GPU, P_CPU, P_MEM, P_TASKS = 0, 1, 2, 3, 4, 5
EVER = -(1 << 61)
NO_STEP = -1


class Profile(NamedTuple):
    """`spare[0]` is the first unused step."""

    steps: Any
    first: Any
    spare: Any


def empty_profile(nodes: Nodes, bookings: int) -> Profile:
    """Room for `bookings` at once; nothing is booked."""
    count = len(nodes.table)
    steps = np.zeros((2 * bookings + count + 4, 6), np.int64)
    steps[:, P_NEXT] = np.arange(1, len(steps) + 1)
    steps[-1, P_NEXT] = NO_STEP
    steps[:count, P_TIME] = EVER
    steps[:count, P_NEXT] = NO_STEP
    steps[:count, P_GPU] = nodes.table[:, ALL_GPU]
    steps[:count, P_CPU] = nodes.table[:, ALL_CPU]
    steps[:count, P_MEM] = nodes.table[:, ALL_MEM]
    return Profile(steps, np.arange(count), np.array([count]))


@leaf
def split(profile: Profile, before: int, at: int) -> int:
    """A new step that begins at `at`, inside the step `before`; returns it."""
    steps = profile.steps
    made = profile.spare[0]
    profile.spare[0] = steps[made, P_NEXT]
    for column in range(P_GPU, P_TASKS + 1):
        steps[made, column] = steps[before, column]
    steps[made, P_TIME] = at
    steps[made, P_NEXT] = steps[before, P_NEXT]
    steps[before, P_NEXT] = made
    return made


@leaf
def merge(profile: Profile, before: int) -> bool:
    """Drops the step after `before` if it says the same."""
    steps = profile.steps
    after = steps[before, P_NEXT]
    if after == NO_STEP:
        return False
    for column in range(P_GPU, P_TASKS + 1):
        if steps[before, column] != steps[after, column]:
            return False
    steps[before, P_NEXT] = steps[after, P_NEXT]
    steps[after, P_NEXT] = profile.spare[0]
    profile.spare[0] = after
    return True


@kernel
def book(
    profile: Profile,
    node: int,
    since: int,
    until: int,
    gpu: int,
    cpu: int,
    mem: int,
    tasks: int,
) -> None:
    """Takes the amounts from [since, until) on the node (negative amounts: gives them back)."""
    if since >= until:
        return
    steps = profile.steps
    before = NO_STEP
    at = profile.first[node]
    while steps[at, P_NEXT] != NO_STEP and steps[steps[at, P_NEXT], P_TIME] <= since:
        before = at
        at = steps[at, P_NEXT]
    if steps[at, P_TIME] < since:
        before = at
        at = split(profile, at, since)
    edge = before
    while at != NO_STEP and steps[at, P_TIME] < until:
        after = steps[at, P_NEXT]
        if after == NO_STEP or steps[after, P_TIME] > until:
            split(profile, at, until)
        steps[at, P_GPU] -= gpu
        steps[at, P_CPU] -= cpu
        steps[at, P_MEM] -= mem
        steps[at, P_TASKS] += tasks
        before = at
        at = steps[at, P_NEXT]
    merge(profile, before)
    if edge != NO_STEP:
        merge(profile, edge)


@kernel
def forget(profile: Profile, node: int, now: int) -> None:
    """Drops the steps of a node that lie wholly before `now`."""
    steps = profile.steps
    at = profile.first[node]
    while steps[at, P_NEXT] != NO_STEP and steps[steps[at, P_NEXT], P_TIME] <= now:
        after = steps[at, P_NEXT]
        steps[at, P_NEXT] = profile.spare[0]
        profile.spare[0] = at
        at = after
    profile.first[node] = at
    steps[at, P_TIME] = EVER
