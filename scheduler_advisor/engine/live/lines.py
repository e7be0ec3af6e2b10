"""Waiting jobs kept in order: a window that slides along as the front is served."""

from __future__ import annotations

from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.live.tuples import Lines


@leaf
def earlier(lines: Lines, one: int, other: int) -> bool:
    """Comes `one` before `other`? Higher tier, smaller key, then the order of submit."""
    if lines.tier[one] != lines.tier[other]:
        return lines.tier[one] < lines.tier[other]
    if lines.key[one] != lines.key[other]:
        return lines.key[one] < lines.key[other]
    return one < other


@kernel
def insert(lines: Lines, job: int) -> None:
    """Puts the job into its line; whichever end is nearer moves."""
    line = lines.of[job]
    first = lines.first[line]
    last = lines.last[line]
    low = first
    high = last
    while low < high:
        middle = (low + high) >> 1
        if earlier(lines, lines.jobs[middle], job):
            low = middle + 1
        else:
            high = middle
    room_before = first > lines.room[line]
    room_after = last < lines.room[line + 1]
    if room_before and (not room_after or low - first < last - low):
        for at in range(first, low):
            lines.jobs[at - 1] = lines.jobs[at]
        lines.first[line] = first - 1
        lines.jobs[low - 1] = job
        return
    for at in range(last, low, -1):
        lines.jobs[at] = lines.jobs[at - 1]
    lines.last[line] = last + 1
    lines.jobs[low] = job


@leaf
def take_out(lines: Lines, line: int, place: int) -> int:
    """Removes who stands at `place`; returns where the one behind stands now."""
    first = lines.first[line]
    last = lines.last[line]
    if place - first <= last - place:
        for at in range(place, first, -1):
            lines.jobs[at] = lines.jobs[at - 1]
        lines.first[line] = first + 1
        return place + 1
    for at in range(place, last - 1):
        lines.jobs[at] = lines.jobs[at + 1]
    lines.last[line] = last - 1
    return place


@kernel
def sort_again(lines: Lines, line: int) -> None:
    """Restores the order after keys have changed: nearly sorted, so neighbours swap."""
    first = lines.first[line]
    for at in range(first + 1, lines.last[line]):
        job = lines.jobs[at]
        to = at
        while to > first and earlier(lines, job, lines.jobs[to - 1]):
            lines.jobs[to] = lines.jobs[to - 1]
            to -= 1
        lines.jobs[to] = job
