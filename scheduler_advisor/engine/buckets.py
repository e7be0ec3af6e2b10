"""Finding nodes by their free GPUs without looking at all of them."""

from __future__ import annotations

import numpy as np

from scheduler_advisor.engine.bits import ONE, from_bit, lowest
from scheduler_advisor.engine.jit import leaf
from scheduler_advisor.engine.world import Buckets


def empty_buckets(groups: int, most: int, nodes: int) -> Buckets:
    """Buckets for `groups` groups, up to `most` free GPUs, `nodes` nodes."""
    words = (nodes >> 6) + 1
    return Buckets(
        np.zeros((groups * (most + 1), words), np.int64),
        np.zeros((groups * (most + 1), (words >> 6) + 1), np.int64),
        np.zeros(groups * (most + 1), np.int64),
        np.zeros((groups, (most >> 6) + 1), np.int64),
    )


@leaf
def enter(buckets: Buckets, group: int, free: int, most: int, node: int) -> None:
    bucket = group * (most + 1) + free
    buckets.words[bucket, node >> 6] |= ONE << (node & 63)
    buckets.upper[bucket, node >> 12] |= ONE << ((node >> 6) & 63)
    buckets.count[bucket] += 1
    buckets.filled[group, free >> 6] |= ONE << (free & 63)


@leaf
def leave(buckets: Buckets, group: int, free: int, most: int, node: int) -> None:
    bucket = group * (most + 1) + free
    word = buckets.words[bucket, node >> 6] & ~(ONE << (node & 63))
    buckets.words[bucket, node >> 6] = word
    if word == 0:
        buckets.upper[bucket, node >> 12] &= ~(ONE << ((node >> 6) & 63))
    buckets.count[bucket] -= 1
    if buckets.count[bucket] == 0:
        buckets.filled[group, free >> 6] &= ~(ONE << (free & 63))


@leaf
def next_node(buckets: Buckets, bucket: int, node: int) -> int:
    """The lowest node in the bucket that is at least `node`, or -1."""
    at = node >> 6
    if at >= buckets.words.shape[1]:
        return -1
    word = buckets.words[bucket, at] & from_bit(node & 63)
    if word != 0:
        return (at << 6) + lowest(word)
    at += 1
    top = at >> 6
    if top >= buckets.upper.shape[1]:
        return -1
    word = buckets.upper[bucket, top] & from_bit(at & 63)
    while word == 0:
        top += 1
        if top >= buckets.upper.shape[1]:
            return -1
        word = buckets.upper[bucket, top]
    at = (top << 6) + lowest(word)
    return (at << 6) + lowest(buckets.words[bucket, at])


@leaf
def next_filled(buckets: Buckets, group: int, free: int) -> int:
    """The smallest number of free GPUs, at least `free`, that some node of the group has, or -1."""
    at = free >> 6
    if at >= buckets.filled.shape[1]:
        return -1
    word = buckets.filled[group, at] & from_bit(free & 63)
    while word == 0:
        at += 1
        if at >= buckets.filled.shape[1]:
            return -1
        word = buckets.filled[group, at]
    return (at << 6) + lowest(word)
