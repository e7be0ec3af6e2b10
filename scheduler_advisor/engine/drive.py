"""The driver loop of policies that start jobs in order, with greedy or EASY backfill or without.

At each instant: completions, outside events, arrivals, then one pass. Heads, counters and totals
are locals of this one loop, because that is what makes it fast; every concern that it calls on is
a small function which dissolves into it.

What it need not do, and still decides as if it had: a pass is skipped while too little is free for
any job, but stays owed; after arrivals alone only the arrivals are examined, since nothing else
has become easier; a shape that failed is not tried again until something is released.
"""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.cast import cast_shadow, release_at_shadow
from scheduler_advisor.engine.heap import JOB_BITS, JOB_MASK, pop, push
from scheduler_advisor.engine.jit import kernel
from scheduler_advisor.engine.outside import happen
from scheduler_advisor.engine.passed_over import pass_over
from scheduler_advisor.engine.place import move_job
from scheduler_advisor.engine.placing import may_fit, place
from scheduler_advisor.engine.preempt import make_room
from scheduler_advisor.engine.ranks import NONE, holds, insert, next_rank, remove
from scheduler_advisor.engine.scored import BY_CHANCE
from scheduler_advisor.engine.shadow import SH_AT, SH_FREE
from scheduler_advisor.engine.steps import (
    LATER,
    begin,
    believed_end,
    finish,
    milli_held,
    stale,
    swept,
    wall_of,
)
from scheduler_advisor.engine.waiting import count_in, free_children, held_back
from scheduler_advisor.engine.world import RANDOM, S_CLASS, S_SIZE, Rules, World

NO_BACKFILL, GREEDY, EASY, CONSERVATIVE, COMPRESS = 0, 1, 2, 3, 4
# Entries of `totals`
FREE, EVENTS, PASSES, SHADOWS, HELD, QUEUED, WAITING, LAST, EXAMINED = range(9)
TOTALS = 9


@kernel
def drive(w: World, rules: Rules, totals: Any) -> None:
    """Replays all jobs; what became of them is in w.runs and w.book, sums in `totals`."""
    nodes, buckets, classes, shapes, shadow = w.nodes, w.buckets, w.classes, w.shapes, w.shadow
    rows, runs, book, held, limits = w.rows, w.runs, w.book, w.held, w.limits
    queue, rank_of, at_rank, component = w.queue, w.rank, w.at_rank, w.component
    eligible, arrival, family, outside = w.eligible, w.arrival, w.family, w.outside
    ends, believed, scratch, deferred = w.ends, w.believed, w.scratch, w.deferred
    failed, dirty, first_rank = w.failed, w.dirty, w.first_rank
    jobs = len(arrival)
    most, shares, plain = rules.most, rules.shares, rules.plain_sizes
    interruptible, smallest, headroom = (
        rules.interruptible,
        rules.smallest_milli,
        rules.headroom_milli,
    )
    easy = rules.backfill == EASY
    selective = rules.limits != 0 or rules.reservations != 0
    anew = selective or rules.preempt != 0 or rules.components > 1
    everywhere = selective or headroom > 0
    # Without chance or windows of time, the same shape fails the same way until something changes.
    steady = rules.reservations == 0 and rules.placement != RANDOM and rules.ties != BY_CHANCE
    longest_filler = rules.max_limit if rules.max_limit != 0 else NONE
    now = -(1 << 60)
    arrived = 0
    happened = 0
    ends_size = 0
    believed_size = 0
    free_milli = totals[FREE]
    held_milli = 0
    waiting = 0
    running = 0
    events = 0
    passes = 0
    shadows = 0
    examined_sum = 0
    held_sum = 0
    queue_sum = 0
    stamp = 0
    epoch = 1
    long_epoch = 1
    moment = 1  # one more whenever what is free, or promised to the head, changes
    fragile_since = (
        LATER  # the first moment at which a job failed that may yet fit when less is free
    )
    head = -1  # the job that blocks the queue
    seen = -1  # the last rank examined behind it
    window = 0  # jobs examined behind it that still wait
    shadow_head = -1  # whose shadow is known and still true
    full = True  # the whole queue is to be examined
    next_arrival = eligible[arrival[0]] if jobs > 0 else LATER
    next_outside = outside[0, 0] if len(outside) > 0 else LATER
    while True:
        if interruptible != 0:
            while ends_size > 0 and stale(runs, ends[0]):
                ends_size = pop(ends, ends_size)
        at = min(next_arrival, next_outside)
        if ends_size > 0:
            at = min(at, ends[0] >> JOB_BITS)
        if at == LATER:
            break
        at = max(at, now)
        stirred = False
        held_sum += held_milli * (at - now)
        queue_sum += waiting * (at - now)
        now = at

        # 1. completions
        while ends_size > 0 and ends[0] >> JOB_BITS <= now:
            packed = ends[0]
            job = packed & JOB_MASK
            ends_size = pop(ends, ends_size)
            if interruptible != 0 and stale(runs, packed):
                continue
            if shadow_head >= 0:
                if believed_end(rows, runs, job) == now and now <= shadow.number[SH_AT]:
                    release_at_shadow(nodes, shadow, shapes, rows, book, shares, job, -1)
                else:
                    shadow_head = -1
            free_milli += milli_held(nodes, shapes, rows, book, plain, job, 1)
            held_milli -= milli_held(nodes, shapes, rows, book, plain, job, 0)
            finish(rows, runs, interruptible, job)
            move_job(nodes, buckets, shapes, rows, book, most, shares, job, 1)
            if rules.limits != 0:
                count_in(limits, shapes[rows.shape[job], S_SIZE], job, -1)
            running -= 1
            events += 1
            epoch += 1
            long_epoch += 1
            moment += 1
            full = True
            stirred = True
            if rules.components > 1:
                dirty[component[shapes[rows.shape[job], S_CLASS]]] = 1
            if rules.dependencies != 0:
                queued = free_children(family, rows, queue, rank_of, eligible, job, now)
                waiting += queued
                if queued != 0:
                    dirty[:] = 1

        # 2. nodes go and come back, reservations begin and end
        while next_outside <= now:
            change, less, queued = happen(
                nodes, buckets, shapes, rows, runs, book, limits, rules, queue, rank_of, ends,
                ends_size, outside[happened, 1], outside[happened, 2], now,
            )  # fmt: skip
            free_milli += change
            held_milli += less
            waiting += queued
            running -= queued
            happened += 1
            next_outside = outside[happened, 0] if happened < len(outside) else LATER
            events += 1
            epoch += 1
            moment += 1
            full = True
            stirred = True
            shadow_head = -1
            dirty[:] = 1

        # 3. arrivals
        lowest_new = NONE
        while next_arrival <= now:
            job = arrival[arrived]
            arrived += 1
            next_arrival = eligible[arrival[arrived]] if arrived < jobs else LATER
            events += 1
            rank = rank_of[job]
            if rules.dependencies != 0 and (family.waits_for[job] > 0 or holds(queue, rank)):
                continue
            insert(queue, rank)
            stirred = True
            waiting += 1
            lowest_new = min(lowest_new, rank)
            if rules.components > 1:
                dirty[component[shapes[rows.shape[job], S_CLASS]]] = 1

        # 4. one pass over every queue in which something may have changed
        if waiting == 0 or (free_milli < smallest and rules.preempt == 0):
            continue
        if not stirred:  # somebody's time has come who waits for another job
            continue
        full = full or anew or head < 0 or lowest_new < seen
        if not full and (lowest_new == NONE or rules.backfill == NO_BACKFILL):
            continue
        passes += 1
        stopped = 0
        for part in range(rules.components):
            if rules.components > 1:
                if dirty[part] == 0 and not everywhere:
                    continue
                dirty[part] = 0
                shadow_head = -1
            last_rank = first_rank[part + 1]
            blocked = not full
            examined = window if blocked else 0
            old_head = head
            if full:
                rank = next_rank(queue, first_rank[part])
                head = -1
                seen = -1
                window = 0
                fragile_since = LATER
                full = rules.components > 1
            else:
                rank = next_rank(queue, seen + 1)
            fragile = False
            made_room = -1
            while rank < last_rank:
                if blocked:
                    due = shadow.number[SH_AT] - now if easy and shadow_head >= 0 else NONE
                    most_over = rules.depth - examined if rules.depth != 0 else NONE
                    rank, over, last_over, for_now = pass_over(
                        queue, at_rank, rows, runs, failed, interruptible, rank, last_rank, epoch,
                        long_epoch, moment, due, longest_filler, most_over,
                    )  # fmt: skip
                    if for_now:
                        fragile_since = min(fragile_since, moment)
                    if over != 0:
                        examined_sum += over
                        examined += over
                        window += over
                        seen = last_over
                        if rank >= last_rank:
                            break
                job = at_rank[rank]
                shape = rows.shape[job]
                size = shapes[shape, S_SIZE]
                examined_sum += 1
                if blocked:
                    if rules.depth != 0 and examined >= rules.depth:
                        break
                    examined += 1
                    window += 1
                    seen = rank
                if selective and held_back(
                    held, limits, rows, size, rules.reservations, rules.limits, job, now
                ):
                    rank = next_rank(queue, rank + 1)
                    continue

                # What the promise to the head asks of this job: 0 nothing, 1 safe nodes only,
                # 2 it cannot be kept.
                guard = 0
                if blocked and easy:
                    if shadow_head < 0:
                        if not may_fit(buckets, classes, shapes, most, shape):
                            failed[shape, 0] = epoch
                            rank = next_rank(queue, rank + 1)
                            continue
                        believed_size = cast_shadow(
                            nodes, shadow, shapes, classes, held, rows, runs, book, rules,
                            believed, believed_size, scratch, head, free_milli,
                        )  # fmt: skip
                        shadows += 1
                        shadow_head = head
                        long_epoch += 1
                        moment += 1
                    until = now + max(wall_of(rows, runs, interruptible, job), rows.limit[job])
                    if until > shadow.number[SH_AT]:
                        guard = 1
                        if (
                            failed[shape, 1] == long_epoch
                            or shadow.number[SH_FREE] - size < headroom
                        ):
                            guard = 2
                placed = 0
                if guard != 2 and free_milli - size >= headroom:
                    stamp += 1
                    placed = place(
                        nodes, buckets, shadow, shapes, classes, held, rows, runs, book, rules,
                        job, now, stamp, guard,
                    )  # fmt: skip

                if placed != 1 and not blocked and rules.preempt != 0 and made_room != job:
                    victims, gained, less = make_room(
                        nodes, buckets, shadow, shapes, classes, held, rows, runs, book, limits,
                        rules, component, ends, ends_size, scratch, job, now, free_milli, stamp,
                    )  # fmt: skip
                    stamp += 2 * jobs + 2
                    for victim in range(victims):
                        deferred[stopped] = scratch[victim]
                        stopped += 1
                    if victims > 0:
                        running -= victims
                        free_milli += gained
                        held_milli += less
                        epoch += 1
                        moment += 1
                        made_room = job
                        continue
                if placed == 1:
                    moment += 1
                    end = begin(rows, runs, interruptible, job, now)
                    if rules.limits != 0:
                        count_in(limits, size, job, 1)
                    if interruptible != 0 and ends_size + 1 >= len(ends):
                        ends_size = swept(rows, runs, ends, ends_size, 0)
                    ends_size = push(ends, ends_size, (end << JOB_BITS) | job)
                    gone = milli_held(nodes, shapes, rows, book, plain, job, 1)
                    free_milli -= gone
                    held_milli += gone
                    if easy:
                        if believed_size + 1 >= len(believed) or believed_size > 4 * running + 64:
                            believed_size = swept(rows, runs, believed, believed_size, 1)
                        packed = (believed_end(rows, runs, job) << JOB_BITS) | job
                        believed_size = push(believed, believed_size, packed)
                        if not blocked:
                            shadow_head = -1
                        elif guard == 0:
                            release_at_shadow(nodes, shadow, shapes, rows, book, shares, job, 1)
                        else:
                            shadow.number[SH_FREE] -= gone
                    remove(queue, rank)
                    waiting -= 1
                    running += 1
                    if blocked:
                        window -= 1
                    if free_milli < smallest and rules.preempt == 0:
                        break
                else:
                    if placed == 0 and rules.reservations == 0:
                        failed[shape, 1 if guard != 0 else 0] = long_epoch if guard != 0 else epoch
                    if placed < 0 and guard != 0 and steady:
                        failed[shape, 2] = moment
                        fragile_since = min(fragile_since, moment)
                    else:
                        fragile = fragile or placed < 0
                    if not blocked:
                        blocked = True
                        head = job
                        seen = rank
                        # A shadow counts room for tasks and for the rest apart, so its instant may
                        # come and the head still not fit: then the promise is made anew.
                        if head != old_head or shadow.number[SH_AT] <= now:
                            shadow_head = -1
                        if rules.backfill == NO_BACKFILL:
                            break
                rank = next_rank(queue, rank + 1)
            full = full or fragile or fragile_since < moment
        for at in range(stopped):
            insert(queue, rank_of[deferred[at]])
            waiting += 1
            full = True
    totals[FREE] = free_milli
    totals[EVENTS] = events
    totals[PASSES] = passes
    totals[SHADOWS] = shadows
    totals[HELD] = held_sum
    totals[QUEUED] = queue_sum
    totals[WAITING] = waiting
    totals[LAST] = now
    totals[EXAMINED] = examined_sum
