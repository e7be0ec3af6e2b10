"""A binary heap of packed integers: time in the upper bits, a job's index in the lower 24."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.jit import leaf

JOB_BITS = 24
JOB_MASK = (1 << JOB_BITS) - 1


@leaf
def push(heap: Any, size: int, value: int) -> int:
    """Puts `value` in; returns the new size. The caller owns the room."""
    at = size
    while at > 0:
        up = (at - 1) >> 1
        if heap[up] <= value:
            break
        heap[at] = heap[up]
        at = up
    heap[at] = value
    return size + 1


@leaf
def pop(heap: Any, size: int) -> int:
    """Takes the smallest (heap[0]) out; returns the new size."""
    size -= 1
    last = heap[size]
    at = 0
    down = 1
    while down < size:
        if down + 1 < size and heap[down + 1] < heap[down]:
            down += 1
        if heap[down] >= last:
            break
        heap[at] = heap[down]
        at = down
        down = 2 * at + 1
    heap[at] = last
    return size
