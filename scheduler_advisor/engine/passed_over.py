"""The jobs behind a blocked head that a pass need not look at again.

In a deep queue nearly every job of a pass is one of these: its shape has failed since anything was
released, or it would outlast the promise to the head and its shape has failed beside that promise,
for good or at this very moment. They are walked word by word of the queue's bits, in a loop with a
handful of variables of its own.
"""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.bits import from_bit, lowest
from scheduler_advisor.engine.jit import kernel
from scheduler_advisor.engine.ranks import NONE, Ranks, next_rank
from scheduler_advisor.engine.steps import wall_of
from scheduler_advisor.engine.world import Rows, Runs


@kernel
def pass_over(
    queue: Ranks,
    at_rank: Any,
    rows: Rows,
    runs: Runs,
    failed: Any,
    interruptible: int,
    rank: int,
    last_rank: int,
    epoch: int,
    long_epoch: int,
    moment: int,
    longest: int,
    max_limit: int,
    most: int,
) -> tuple[int, int, int, bool]:
    """The first queued rank from `rank` (a queued one, below `last_rank`) that is worth a look,
    how many were passed over, the last of these (-1: none), and whether any of them has failed at
    this moment only.

    ``longest``: seconds until the promise falls due, or NONE where there is none yet.
    ``max_limit``: the longest limit that may be backfilled, or NONE.
    ``most``: no more than that many are passed over.
    """
    skipped = 0
    last = -1
    fragile = False
    at = rank >> 6
    word = queue.low[at] & from_bit(rank & 63)
    while True:
        while word != 0:
            rank = (at << 6) + lowest(word)
            if rank >= last_rank or skipped >= most:
                return rank, skipped, last, fragile
            job = at_rank[rank]
            shape = rows.shape[job]
            if failed[shape, 0] != epoch and rows.limit[job] <= max_limit:
                for_now = failed[shape, 2] == moment
                if failed[shape, 1] != long_epoch and not for_now:
                    return rank, skipped, last, fragile
                if max(wall_of(rows, runs, interruptible, job), rows.limit[job]) <= longest:
                    return rank, skipped, last, fragile
                fragile = fragile or for_now
            skipped += 1
            last = rank
            word &= word - 1
        rank = next_rank(queue, (at + 1) << 6)
        if rank == NONE:
            return NONE, skipped, last, fragile
        at = rank >> 6
        word = queue.low[at]
