"""The driver loop of conservative backfill: every queued job has a place in a plan.

`conservative` makes the plan anew at each pass, in queue order. Only who starts now comes of it,
so it plans no further than the last queued job that has room now (but those in full: a job that
starts late pushes others). On a pool of GPUs alone `drive_pool` does it faster.
`conservative-compress` keeps the plan and moves every job forward after a completion.
"""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.drive import (
    COMPRESS,
    EVENTS,
    EXAMINED,
    FREE,
    HELD,
    LAST,
    PASSES,
    QUEUED,
    WAITING,
)
from scheduler_advisor.engine.heap import JOB_BITS, JOB_MASK, pop, push
from scheduler_advisor.engine.jit import kernel
from scheduler_advisor.engine.outside import happen
from scheduler_advisor.engine.place import move_job, tasks_of
from scheduler_advisor.engine.placing import may_fit
from scheduler_advisor.engine.plan import NOWHEN, book_job, earliest
from scheduler_advisor.engine.planned import (
    LENGTHS,
    length_of,
    power,
    take_planned,
    unplan,
    unplan_all,
    until_of,
)
from scheduler_advisor.engine.profile import Profile, forget
from scheduler_advisor.engine.ranks import NONE, holds, insert, next_rank, remove
from scheduler_advisor.engine.steps import (
    LATER,
    begin,
    finish,
    milli_held,
    stale,
    swept,
)
from scheduler_advisor.engine.waiting import count_in, free_children, held_back
from scheduler_advisor.engine.world import (
    RUNS,
    S_CLASS,
    S_REST_GPU,
    S_SIZE,
    Rules,
    World,
)


@kernel
def drive_planned(
    w: World, rules: Rules, profile: Profile, planned: Any, least: Any, bounds: Any, totals: Any
) -> None:
    """Replays all jobs; `planned` holds each queued job's start in the plan, `bounds` room for
    [shape, power of two] -> start and pass."""
    nodes, buckets, classes, shapes = w.nodes, w.buckets, w.classes, w.shapes
    rows, runs, book, held, limits = w.rows, w.runs, w.book, w.held, w.limits
    queue, rank_of, at_rank = w.queue, w.rank, w.at_rank
    eligible, arrival, family, outside = w.eligible, w.arrival, w.family, w.outside
    ends, first_rank, placed = w.ends, w.first_rank, w.scratch
    jobs = len(arrival)
    plain, interruptible = rules.plain_sizes, rules.interruptible
    keeps = rules.backfill == COMPRESS
    selective = rules.limits != 0 or rules.reservations != 0
    now = -(1 << 60)
    arrived = 0
    happened = 0
    ends_size = 0
    free_milli = totals[FREE]
    held_milli = 0
    waiting = 0
    events = 0
    passes = 0
    examined_sum = 0
    held_sum = 0
    queue_sum = 0
    stamp = 0
    full = True
    highest = -1  # no queued job has a higher rank
    next_planned = LATER
    next_arrival = eligible[arrival[0]] if jobs > 0 else LATER
    next_outside = outside[0, 0] if len(outside) > 0 else LATER
    while True:
        if interruptible != 0:
            while ends_size > 0 and stale(runs, ends[0]):
                ends_size = pop(ends, ends_size)
        at = min(next_arrival, next_outside)
        if ends_size > 0:
            at = min(at, ends[0] >> JOB_BITS)
        if keeps:
            at = min(at, next_planned)
        if at == LATER:
            break
        at = max(at, now)
        held_sum += held_milli * (at - now)
        queue_sum += waiting * (at - now)
        now = at
        if keeps and next_planned <= now:
            full = True

        # 1. completions
        while ends_size > 0 and ends[0] >> JOB_BITS <= now:
            packed = ends[0]
            job = packed & JOB_MASK
            ends_size = pop(ends, ends_size)
            if interruptible != 0 and stale(runs, packed):
                continue
            free_milli += milli_held(nodes, shapes, rows, book, plain, job, 1)
            held_milli -= milli_held(nodes, shapes, rows, book, plain, job, 0)
            until = until_of(rows, runs, job)
            if until > now:
                book_job(nodes, shapes, rows, book, profile, job, now, until, -1)
            for task in range(tasks_of(shapes, rows.shape[job])):
                forget(profile, book.node[rows.place[job] + task], now)
            finish(rows, runs, interruptible, job)
            move_job(nodes, buckets, shapes, rows, book, rules.most, 0, job, 1)
            if rules.limits != 0:
                count_in(limits, shapes[rows.shape[job], S_SIZE], job, -1)
            events += 1
            full = True
            if rules.dependencies != 0:
                waiting += free_children(family, rows, queue, rank_of, eligible, job, now)
            if keeps:
                rank = next_rank(queue, 0)
                while rank != NONE:
                    other = at_rank[rank]
                    if planned[other] != NOWHEN:
                        unplan(
                            nodes, shapes, rows, runs, book, profile, interruptible, planned, other
                        )
                        length = length_of(rows, runs, interruptible, other)
                        stamp += 1
                        start = earliest(
                            nodes, classes, shapes, held, rows, runs, rules, book, profile, least,
                            other, now, length, stamp,
                        )  # fmt: skip
                        planned[other] = start
                        if start != NOWHEN:
                            book_job(
                                nodes, shapes, rows, book, profile, other, start, start + length, 1
                            )
                    rank = next_rank(queue, rank + 1)

        # 2. nodes go and come back, reservations begin and end
        while next_outside <= now:
            if keeps and outside[happened, 2] >= 0:
                unplan_all(
                    nodes, shapes, rows, runs, book, profile, interruptible, planned, queue, at_rank
                )
            for entry in range(ends_size):
                job = ends[entry] & JOB_MASK
                placed[entry] = -1 if stale(runs, ends[entry]) else job
            change, less, queued = happen(
                nodes, buckets, shapes, rows, runs, book, limits, rules, queue, rank_of, ends,
                ends_size, outside[happened, 1], outside[happened, 2], now,
            )  # fmt: skip
            for entry in range(ends_size if queued != 0 else 0):
                job = placed[entry]
                if job >= 0 and runs.phase[job] != RUNS:
                    for other in range(entry + 1, ends_size):
                        if placed[other] == job:
                            placed[other] = -1
                    until = planned[job]  # what it was booked until, kept there while it ran
                    book_job(nodes, shapes, rows, book, profile, job, now, until, -1)
                    planned[job] = NOWHEN
            free_milli += change
            held_milli += less
            waiting += queued
            happened += 1
            next_outside = outside[happened, 0] if happened < len(outside) else LATER
            events += 1
            full = True

        # 3. arrivals
        lowest_new = NONE
        highest_old = highest
        while next_arrival <= now:
            job = arrival[arrived]
            arrived += 1
            next_arrival = eligible[arrival[arrived]] if arrived < jobs else LATER
            events += 1
            rank = rank_of[job]
            if rules.dependencies != 0 and (family.waits_for[job] > 0 or holds(queue, rank)):
                continue
            insert(queue, rank)
            waiting += 1
            lowest_new = min(lowest_new, rank)
            highest = max(highest, rank)

        # 4. one pass
        if waiting == 0:
            highest = -1
        if waiting == 0 or (not keeps and free_milli < rules.smallest_milli):
            if keeps:
                next_planned = LATER
            continue
        full = full or selective or rules.depth != 0 or lowest_new < highest_old
        if not full and lowest_new == NONE:
            continue
        passes += 1
        overtaken = False
        next_planned = LATER
        for part in range(rules.components):
            last_rank = first_rank[part + 1]
            # Who could start now at all: nobody behind the last of them need be planned.
            final = last_rank - 1
            if not keeps:
                final = -1
                first = first_rank[part] if full else max(lowest_new, first_rank[part])
                rank = next_rank(queue, first)
                while rank < last_rank:
                    job = at_rank[rank]
                    if may_fit(buckets, classes, shapes, rules.most, rows.shape[job]):
                        final = rank
                    rank = next_rank(queue, rank + 1)
            waits_before = False
            headed = False
            examined = 0
            temporary = 0
            rank = next_rank(queue, first_rank[part])
            while rank <= final:
                job = at_rank[rank]
                shape = rows.shape[job]
                size = shapes[shape, S_SIZE]
                length = length_of(rows, runs, interruptible, job)
                examined_sum += 1
                if headed:
                    if rules.depth != 0 and examined >= rules.depth:
                        while keeps and rank < last_rank:
                            unplan(
                                nodes, shapes, rows, runs, book, profile, interruptible, planned,
                                at_rank[rank],
                            )  # fmt: skip
                            rank = next_rank(queue, rank + 1)
                        break
                    examined += 1
                if keeps and planned[job] < now:
                    unplan(nodes, shapes, rows, runs, book, profile, interruptible, planned, job)
                if selective and held_back(
                    held, limits, rows, size, rules.reservations, rules.limits, job, now
                ):
                    if keeps:
                        unplan(
                            nodes, shapes, rows, runs, book, profile, interruptible, planned, job
                        )
                    rank = next_rank(queue, rank + 1)
                    continue
                headed = True
                booked = keeps and planned[job] != NOWHEN
                start = planned[job]
                if not booked:
                    since = now
                    exact = not keeps and shapes[shape, S_REST_GPU] == 0
                    bucket = power(length)
                    if exact and bounds[shape, bucket, 1] == passes:
                        since = bounds[shape, bucket, 0]
                    stamp += 1
                    start = earliest(
                        nodes, classes, shapes, held, rows, runs, rules, book, profile, least,
                        job, since, length, stamp,
                    )  # fmt: skip
                    if exact:
                        # A longer job of this shape will not find room earlier.
                        for longer in range(bucket + 1, LENGTHS):
                            if bounds[shape, longer, 1] != passes:
                                bounds[shape, longer, 1] = passes
                                bounds[shape, longer, 0] = start
                            elif bounds[shape, longer, 0] < start:
                                bounds[shape, longer, 0] = start
                turn = not (
                    waits_before and rules.max_limit != 0 and rows.limit[job] > rules.max_limit
                )
                if start == now and turn:
                    if booked:
                        unplan(
                            nodes, shapes, rows, runs, book, profile, interruptible, planned, job
                        )
                    take_planned(nodes, buckets, shapes, rows, book, rules, job)
                    end = begin(rows, runs, interruptible, job, now)
                    if rules.limits != 0:
                        count_in(limits, size, job, 1)
                    if interruptible != 0 and ends_size + 1 >= len(ends):
                        ends_size = swept(rows, runs, ends, ends_size, 0)
                    ends_size = push(ends, ends_size, (end << JOB_BITS) | job)
                    until = until_of(rows, runs, job)
                    book_job(nodes, shapes, rows, book, profile, job, now, until, 1)
                    planned[job] = until
                    overtaken = overtaken or waits_before
                    gone = milli_held(nodes, shapes, rows, book, plain, job, 1)
                    free_milli -= gone
                    held_milli += gone
                    remove(queue, rank)
                    waiting -= 1
                    if not keeps and free_milli < rules.smallest_milli:
                        break
                else:
                    waits_before = True
                    if start != NOWHEN and not booked:
                        book_job(nodes, shapes, rows, book, profile, job, start, start + length, 1)
                        planned[job] = start
                    if start != NOWHEN and (not keeps or start == now):
                        w.deferred[temporary] = job
                        temporary += 1
                    elif keeps and start != NOWHEN:
                        next_planned = min(next_planned, start)
                rank = next_rank(queue, rank + 1)
            for one in range(temporary):
                unplan(
                    nodes, shapes, rows, runs, book, profile, interruptible, planned,
                    w.deferred[one],
                )  # fmt: skip
        # Those before somebody who has started see him now: they may prefer other nodes.
        full = overtaken
    totals[FREE] = free_milli
    totals[EVENTS] = events
    totals[PASSES] = passes
    totals[HELD] = held_sum
    totals[QUEUED] = queue_sum
    totals[WAITING] = waiting
    totals[LAST] = now
    totals[EXAMINED] = examined_sum


__all__ = ["LENGTHS", "S_CLASS", "drive_planned"]
