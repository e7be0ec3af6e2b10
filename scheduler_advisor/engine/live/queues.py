"""What queues hold, have used and are entitled to."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.live.tuples import (
    Q_ASKED,
    Q_DEPTH,
    Q_FAIR,
    Q_GATHERED,
    Q_GUARANTEE,
    Q_HELD,
    Q_HELD_CPU,
    Q_HELD_MEM,
    Q_KEEP,
    Q_MAXIMUM,
    Q_NEXT,
    Q_PARENT,
    Q_SINCE,
    Q_USED,
    Q_WAITING,
    Q_WEIGHT,
    WAITING_QUEUES,
    Terms,
    Tree,
)

BY_SHARE, BY_DRF = 1, 2  # Terms.by_queue
WEIGHT, GUARANTEE, TWO_STEP = 0, 1, 2  # Terms.entitlement
DECAY_BITS = 20
WHOLE = 1000
NO_MAXIMUM = 1 << 60
LOOSE, STRICT = 1, 2  # Terms.reclaim


@leaf
def accrue(row: Any, queue: int, terms: Terms, now: int) -> None:
    """Counts what the queue has held up to `now`, period by period."""
    while row[queue, Q_NEXT] <= now:
        end = row[queue, Q_NEXT]
        row[queue, Q_GATHERED] += row[queue, Q_HELD] * (end - row[queue, Q_SINCE])
        row[queue, Q_USED] = ((row[queue, Q_USED] * terms.decay) >> DECAY_BITS) + row[
            queue, Q_GATHERED
        ] // WHOLE
        row[queue, Q_GATHERED] = 0
        row[queue, Q_SINCE] = end
        row[queue, Q_NEXT] = end + terms.period
    row[queue, Q_GATHERED] += row[queue, Q_HELD] * (now - row[queue, Q_SINCE])
    row[queue, Q_SINCE] = now


@leaf
def entitled(row: Any, queue: int, kind: int) -> int:
    """What usage is divided by; never 0."""
    if kind == WEIGHT:
        return max(1, row[queue, Q_WEIGHT] * WHOLE)
    return max(1, row[queue, Q_GUARANTEE] if kind == GUARANTEE else row[queue, Q_FAIR])


@leaf
def share_of(tree: Tree, terms: Terms, total: Any, queue: int) -> float:
    """Usage over entitlement: the smaller, the sooner served."""
    row = tree.row
    if terms.by_queue == BY_DRF:
        most = 0.0
        for one in range(3):
            if total[one] > 0:
                most = max(most, float(row[queue, Q_HELD + one]) / float(total[one]))
        return most / float(entitled(row, queue, WEIGHT))
    used = row[queue, Q_USED] if terms.half_life != 0 else row[queue, Q_HELD]
    return float(used) / float(entitled(row, queue, terms.entitlement))


@leaf
def count(
    tree: Tree, terms: Terms, total: Any, queue: int, milli: int, cpu: int, mem: int, now: int
) -> None:
    """The queue and all above it hold so much more (or less) from now."""
    row = tree.row
    while queue > 0:
        if terms.period != 0:
            accrue(row, queue, terms, now)
        row[queue, Q_HELD] += milli
        row[queue, Q_HELD_CPU] += cpu
        row[queue, Q_HELD_MEM] += mem
        if terms.by_queue != 0 and terms.half_life == 0:
            tree.key[queue] = share_of(tree, terms, total, queue)
        queue = row[queue, Q_PARENT]


@leaf
def asks(tree: Tree, z: Any, queue: int, milli: int, sign: int) -> None:
    """One more job (or one less) waits in the queue for so much."""
    before = tree.row[queue, Q_WAITING]
    tree.row[queue, Q_WAITING] = before + sign
    if before == 0 or before + sign == 0:
        z[WAITING_QUEUES] += sign
    milli = sign * milli
    while queue > 0:
        tree.row[queue, Q_ASKED] += milli
        queue = tree.row[queue, Q_PARENT]


@kernel
def refresh(tree: Tree, terms: Terms, total: Any, now: int) -> None:
    """Usage and order of all queues as they are now."""
    for queue in range(1, len(tree.row)):
        if terms.period != 0:
            accrue(tree.row, queue, terms, now)
        if terms.by_queue != 0:
            tree.key[queue] = share_of(tree, terms, total, queue)


@kernel
def parting(tree: Tree, mine: int, theirs: int) -> tuple[int, int]:
    """The queues of two jobs at the level at which their paths part."""
    row = tree.row
    while row[mine, Q_DEPTH] > row[theirs, Q_DEPTH]:
        mine = row[mine, Q_PARENT]
    while row[theirs, Q_DEPTH] > row[mine, Q_DEPTH]:
        theirs = row[theirs, Q_PARENT]
    while row[mine, Q_PARENT] != row[theirs, Q_PARENT]:
        mine = row[mine, Q_PARENT]
        theirs = row[theirs, Q_PARENT]
    return mine, theirs


@leaf
def right(tree: Tree, terms: Terms, queue: int) -> int:
    """What reclaim restores to the queue, and what it leaves to it."""
    return tree.row[queue, Q_FAIR if terms.reclaim_fair != 0 else Q_GUARANTEE]


@kernel
def lendable(tree: Tree, terms: Terms, mine: int, other: int, milli: int) -> int:
    """How large a job of queue `other` may be that one of `milli` in queue `mine` reclaims from;
    -1: none may be."""
    one, theirs = parting(tree, mine, other)
    row = tree.row
    if row[one, Q_HELD] + milli > right(tree, terms, one):
        return -1
    over = row[theirs, Q_HELD] - right(tree, terms, theirs)
    if terms.reclaim == STRICT or over <= 0:
        return over if terms.reclaim == STRICT else -1
    return NO_MAXIMUM


@leaf
def below_maximum(row: Any, queue: int, milli: int) -> bool:
    """Do the maxima of the queue and of all above it leave room?"""
    fits = True
    while queue > 0:
        if row[queue, Q_HELD] + milli > row[queue, Q_MAXIMUM]:
            fits = False
            break
        queue = row[queue, Q_PARENT]
    return fits


@leaf
def admits(tree: Tree, terms: Terms, queue: int, milli: int, free: int) -> bool:
    """Do maxima, and what other queues keep for themselves, let the job start?"""
    row = tree.row
    if terms.limits_queues != 0 and not below_maximum(row, queue, milli):
        return False
    if terms.keeps == 0 or row[queue, Q_HELD] + milli <= row[queue, Q_GUARANTEE]:
        return True
    kept = 0
    for other in range(1, len(row)):
        if other != queue and row[other, Q_KEEP] > 0:
            kept += max(0, row[other, Q_KEEP] - row[other, Q_HELD])
    return kept == 0 or free - milli >= kept


@kernel
def share_out(tree: Tree, capacity: int) -> None:
    """Two-step fair shares: guarantees as far as they are asked for, then by weight among those
    who still ask; parents come before children."""
    row = tree.row
    row[0, Q_FAIR] = capacity
    for queue in range(len(row)):
        start = tree.child_start[queue]
        end = tree.child_start[queue + 1]
        left = row[queue, Q_FAIR]
        for at in range(start, end):
            child = tree.children[at]
            demand = row[child, Q_HELD] + row[child, Q_ASKED]
            row[child, Q_FAIR] = min(row[child, Q_GUARANTEE], demand)
            left -= row[child, Q_FAIR]
        while left > 0 and start < end:
            left = _round(tree, start, end, left)


@leaf
def _round(tree: Tree, start: int, end: int, left: int) -> int:
    """One round of sharing by weight; returns what is left for another, 0 if there is none."""
    row = tree.row
    weights = 0
    for at in range(start, end):
        child = tree.children[at]
        if row[child, Q_HELD] + row[child, Q_ASKED] > row[child, Q_FAIR]:
            weights += row[child, Q_WEIGHT]
    if weights == 0:
        return 0
    rest = left
    for at in range(start, end):
        child = tree.children[at]
        missing = row[child, Q_HELD] + row[child, Q_ASKED] - row[child, Q_FAIR]
        # A queue without weight has a share of 0, which never suffices.
        if 0 < missing <= left * row[child, Q_WEIGHT] // weights:
            row[child, Q_FAIR] += missing
            rest -= missing
    if rest < left:
        return rest
    for at in range(start, end):
        child = tree.children[at]
        missing = row[child, Q_HELD] + row[child, Q_ASKED] - row[child, Q_FAIR]
        if missing > 0:
            row[child, Q_FAIR] += left * row[child, Q_WEIGHT] // weights
    return 0
