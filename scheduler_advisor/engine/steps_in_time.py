"""What will be free in a pool of GPUs, as steps in time, in two arrays side by side.

Step i holds from `time[i]` until the next one's time, the last one for ever. The first `low` steps
are over. Kept in one piece, so that looking through them is reading memory in order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduler_advisor.engine.jit import leaf

NOWHEN = 1 << 60  # no instant will do


class Steps(NamedTuple):
    """Thousandths of GPUs that are free."""

    time: Any
    free: Any


def empty_steps(room: int, free: int) -> Steps:
    """Nothing is held, ever; room for `room` steps."""
    steps = Steps(np.zeros(room, np.int64), np.zeros(room, np.int64))
    steps.time[0] = -(1 << 61)
    steps.free[0] = free
    return steps


@leaf
def step_at(steps: Steps, low: int, count: int, at: int) -> int:
    """The step that holds at `at`."""
    high = count
    while high - low > 1:
        middle = (low + high) >> 1
        if steps.time[middle] <= at:
            low = middle
        else:
            high = middle
    return low


@leaf
def cut(steps: Steps, count: int, step: int, at: int) -> tuple[int, int]:
    """A step begins at `at`, which lies in `step`: that step, and how many there are now."""
    if steps.time[step] == at:
        return step, count
    move = count
    while move > step + 1:
        steps.time[move] = steps.time[move - 1]
        steps.free[move] = steps.free[move - 1]
        move -= 1
    steps.time[step + 1] = at
    steps.free[step + 1] = steps.free[step]
    return step + 1, count + 1


@leaf
def join(steps: Steps, count: int, step: int) -> int:
    """Drops the step if it says what the one before says; returns how many there are."""
    if steps.free[step] != steps.free[step - 1]:
        return count
    for move in range(step, count - 1):
        steps.time[move] = steps.time[move + 1]
        steps.free[move] = steps.free[move + 1]
    return count - 1


@leaf
def take(steps: Steps, low: int, count: int, since: int, until: int, size: int) -> int:
    """`size` is held during [since, until); returns how many steps there are."""
    if size == 0:
        return count
    at, count = cut(steps, count, step_at(steps, low, count, since), since)
    last, count = cut(steps, count, step_at(steps, at, count, until), until)
    for step in range(at, last):
        steps.free[step] -= size
    return count


@leaf
def give_back(steps: Steps, low: int, count: int, since: int, until: int, size: int) -> int:
    """`size` is no longer held during [since, until), which begins where the first step does."""
    if size == 0:
        return count
    last = step_at(steps, low, count, until)
    for step in range(low, last):
        steps.free[step] += size
    return join(steps, count, last)


@leaf
def begun(steps: Steps, low: int, count: int, now: int) -> int:
    """The first step that is not over, made to begin now."""
    low = step_at(steps, low, count, now)
    steps.time[low] = now
    return low


@leaf
def copy_steps(into: Steps, steps: Steps, low: int, count: int) -> int:
    for step in range(low, count):
        into.time[step - low] = steps.time[step]
        into.free[step - low] = steps.free[step]
    return count - low


@leaf
def fits_now(steps: Steps, low: int, count: int, until: int, size: int) -> bool:
    """Is `size` free from the first step on until `until`?"""
    step = low
    while step < count and steps.time[step] < until and steps.free[step] >= size:
        step += 1
    return step == count or steps.time[step] >= until


@leaf
def first_room(steps: Steps, low: int, count: int, since: int, length: int, size: int) -> int:
    """The first instant from `since` at which `size` is free for `length`, or NOWHEN."""
    step = step_at(steps, low, count, since)
    while True:
        while step < count and steps.free[step] < size:
            step += 1
        if step == count:
            return NOWHEN
        start = max(steps.time[step], since)
        until = start + length
        step += 1
        while step < count and steps.time[step] < until and steps.free[step] >= size:
            step += 1
        if step == count or steps.time[step] >= until:
            return start
