"""The queue: a set of ranks (places in the policy's order) as bits in three levels.

The order is settled once for all jobs, so that queueing a job is setting one bit and walking the
queue in order is finding the next one, however long the queue is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduler_advisor.engine.bits import ONE, from_bit, lowest
from scheduler_advisor.engine.jit import leaf

NONE = 1 << 62  # "no such rank": beyond every rank


class Ranks(NamedTuple):
    """A bit in `high` says that its word in `mid` is not 0, and so on down to the ranks."""

    low: Any
    mid: Any
    high: Any


def empty_ranks(size: int) -> Ranks:
    words = (size >> 6) + 1
    return Ranks(
        np.zeros(words, np.int64),
        np.zeros((words >> 6) + 1, np.int64),
        np.zeros((words >> 12) + 1, np.int64),
    )


@leaf
def insert(ranks: Ranks, rank: int) -> None:
    ranks.low[rank >> 6] |= ONE << (rank & 63)
    ranks.mid[rank >> 12] |= ONE << ((rank >> 6) & 63)
    ranks.high[rank >> 18] |= ONE << ((rank >> 12) & 63)


@leaf
def remove(ranks: Ranks, rank: int) -> None:
    ranks.low[rank >> 6] &= ~(ONE << (rank & 63))
    if ranks.low[rank >> 6] == 0:
        ranks.mid[rank >> 12] &= ~(ONE << ((rank >> 6) & 63))
        if ranks.mid[rank >> 12] == 0:
            ranks.high[rank >> 18] &= ~(ONE << ((rank >> 12) & 63))


@leaf
def holds(ranks: Ranks, rank: int) -> bool:
    return (ranks.low[rank >> 6] >> (rank & 63)) & 1 != 0


@leaf
def next_rank(ranks: Ranks, rank: int) -> int:
    """The lowest rank in the set that is at least `rank`, or NONE."""
    at = rank >> 6
    if at >= len(ranks.low):
        return NONE
    word = ranks.low[at] & from_bit(rank & 63)
    if word != 0:
        return (at << 6) + lowest(word)
    at += 1
    up = at >> 6
    if up >= len(ranks.mid):
        return NONE
    word = ranks.mid[up] & from_bit(at & 63)
    if word == 0:
        up += 1
        top = up >> 6
        if top >= len(ranks.high):
            return NONE
        word = ranks.high[top] & from_bit(up & 63)
        while word == 0:
            top += 1
            if top >= len(ranks.high):
                return NONE
            word = ranks.high[top]
        up = (top << 6) + lowest(word)
        word = ranks.mid[up]
    at = (up << 6) + lowest(word)
    return (at << 6) + lowest(ranks.low[at])
