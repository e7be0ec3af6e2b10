"""A pass over a plan that is kept: who is looked at again, who may hope, who starts."""

from __future__ import annotations

from scheduler_advisor.engine.heap import JOB_BITS, push
from scheduler_advisor.engine.jit import leaf
from scheduler_advisor.engine.kept import (
    CHANGED,
    DUE,
    ENDS,
    FREE_NOW,
    FRONT,
    H_FAILS,
    H_MAY,
    H_PASS,
    LOOKED_AT,
    LOW,
    NOW,
    PASS,
    STARTED,
    TOP,
    TRY,
    UNPLANNED,
    WAITING_NOW,
    WITNESS,
    Kept,
    note_alone,
    plan_job,
)
from scheduler_advisor.engine.kept_changes import changed, job_changed, soonest_of, touched
from scheduler_advisor.engine.kept_decide import decide, fits_now
from scheduler_advisor.engine.kept_search import rule_of
from scheduler_advisor.engine.place import tasks_of
from scheduler_advisor.engine.placing import may_fit
from scheduler_advisor.engine.plan import NOWHEN, book_job
from scheduler_advisor.engine.planned import take_planned
from scheduler_advisor.engine.ranks import NONE, next_rank, remove
from scheduler_advisor.engine.steps import LATER, begin
from scheduler_advisor.engine.world import BEST_FIT, S_CLASS, S_SIZE, Rules, World


@leaf
def last_of(w: World, rules: Rules, part: int) -> int:
    """Nobody of this rank or a higher one is looked at in the queue."""
    last = w.first_rank[part + 1]
    if rules.depth == 0:
        return last
    rank = next_rank(w.queue, w.first_rank[part])
    for _ in range(rules.depth + 1):
        if rank < last:
            rank = next_rank(w.queue, rank + 1)
    return min(last, rank)


@leaf
def look_again(w: World, rules: Rules, kept: Kept, part: int, last: int, packs: int) -> int:
    """Starts those whose time has come and whom no change concerns; returns the first rank from
    which on jobs must be looked at again."""
    number, queue, now = kept.number, kept.queue[part], kept.number[NOW]
    first = min(queue[LOW], queue[FRONT])
    if number[CHANGED] == 0 and queue[DUE] > now:
        return first
    queue[DUE] = LATER
    ready = 0
    rank = next_rank(w.queue, w.first_rank[part])
    while rank < min(first, last):
        job = w.at_rank[rank]
        start = kept.start[job]
        if start < now or (  # it was too far behind when its time came
            number[CHANGED] != 0
            and (
                start >= soonest_of(w.nodes, w.classes, w.shapes, kept, w.rows.shape[job], packs)
                or touched(kept, w.shapes, w.rows, w.book, job, start, start + kept.length[job])
            )
        ):
            first = rank
            break
        if start == now:
            w.deferred[ready] = rank
            ready += 1
        else:
            queue[DUE] = min(queue[DUE], start)
        rank = next_rank(w.queue, rank + 1)
    for one in range(ready):
        start_job(w, rules, kept, w.deferred[one])
    return min(first, last) if rank >= last else first


@leaf
def look_for_hopes(w: World, rules: Rules, kept: Kept, first: int, last: int) -> int:
    """Lists those from `first` on whom free GPUs alone do not forbid to start; how many."""
    hopes = 0
    rank = next_rank(w.queue, first)
    while rank < last:
        shape = w.rows.shape[w.at_rank[rank]]
        hope = kept.hope[shape]
        if hope[H_PASS] != kept.number[PASS]:
            hope[H_PASS] = kept.number[PASS]
            hope[H_MAY] = may_fit(w.buckets, w.classes, w.shapes, rules.most, shape)
            hope[H_FAILS] = NOWHEN
        if hope[H_MAY] != 0:
            kept.hopes[hopes] = rank
            hopes += 1
        rank = next_rank(w.queue, rank + 1)
    return hopes


@leaf
def open_from(w: World, kept: Kept, part: int, first: int) -> None:
    """Takes everybody from `first` on out of the plan, who may get another place."""
    queue = kept.queue[part]
    rank = next_rank(w.queue, first)
    while rank < queue[FRONT]:
        job = w.at_rank[rank]
        start = kept.start[job]
        if start not in (UNPLANNED, NOWHEN):
            until = start + kept.length[job]
            plan_job(w.nodes, w.shapes, w.rows, w.book, kept, job, start, until, -1)
        rank = next_rank(w.queue, rank + 1)
    queue[LOW] = NONE
    kept.number[WITNESS] = -1


@leaf
def plan_on(w: World, rules: Rules, kept: Kept, part: int, first: int, hopes: int) -> int:
    """Plans from `first` on as long as somebody behind may start now; returns the next rank."""
    number, queue = kept.number, kept.queue[part]
    while True:
        hopes = still_hopes(w, rules, kept, hopes, first)
        if hopes == 0:
            return first
        rank = next_rank(w.queue, first)
        first = rank + 1
        start = place_again(w, rules, kept, rank, rank <= queue[TOP])
        queue[TOP] = max(queue[TOP], rank)
        if start > number[NOW]:
            queue[DUE] = min(queue[DUE], start)
            continue
        start_job(w, rules, kept, rank)
        if number[FREE_NOW] < rules.smallest_milli:
            return first


@leaf
def still_hopes(w: World, rules: Rules, kept: Kept, hopes: int, first: int) -> int:
    """How many hopes are left when those at the end who cannot start now are given up."""
    while hopes > 0:
        rank = kept.hopes[hopes - 1]
        if rank < first:
            return 0
        job = w.at_rank[rank]
        shape, length = w.rows.shape[job], kept.length[job]
        if length < kept.hope[shape, H_FAILS]:
            if fits_now(
                w.nodes, w.buckets, w.classes, w.shapes, rules.most, kept, shape,
                kept.number[NOW], length,
            ):  # fmt: skip
                break
            kept.hope[shape, H_FAILS] = length
        hopes -= 1
    return hopes


@leaf
def place_again(w: World, rules: Rules, kept: Kept, rank: int, others: bool) -> int:
    """Books the job where it would be planned now; `others` behind it see what that changes."""
    shapes, rows, book, stood = w.shapes, w.rows, w.book, kept.stood
    job = w.at_rank[rank]
    length, before = kept.length[job], kept.start[job]
    kept.number[LOOKED_AT] += 1
    kept.number[TRY] += 1
    tasks = tasks_of(shapes, rows.shape[job])
    entry = rows.place[job]
    for task in range(tasks):
        stood[task] = book.node[entry + task]
    start = decide(
        w.nodes, w.buckets, w.classes, shapes, w.held, rows, rules, book, kept, job,
        kept.number[NOW], length, kept.number[TRY],
    )  # fmt: skip
    kept.start[job] = start
    if start != NOWHEN:
        plan_job(w.nodes, shapes, rows, book, kept, job, start, start + length, 1)
    same = start == before
    for task in range(tasks):
        same = same and stood[task] == book.node[entry + task]
    if same or not others:
        return start
    packs = int(rule_of(rules) == BEST_FIT)
    if before not in (UNPLANNED, NOWHEN):
        for task in range(tasks):
            changed(kept, stood[task], before, before + length, 1, packs)
    if start != NOWHEN:
        job_changed(kept, shapes, rows, book, job, start, start + length, 0, packs)
    return start


@leaf
def start_job(w: World, rules: Rules, kept: Kept, rank: int) -> None:
    """The job takes its place in the plan, which is booked."""
    number, shapes, rows, book = kept.number, w.shapes, w.rows, w.book
    job, now = w.at_rank[rank], kept.number[NOW]
    take_planned(w.nodes, w.buckets, shapes, rows, book, rules, job)
    end = begin(rows, w.runs, 0, job, now)
    number[ENDS] = push(w.ends, number[ENDS], (end << JOB_BITS) | job)
    book_job(w.nodes, shapes, rows, book, kept.running, job, now, now + kept.length[job], 1)
    for task in range(tasks_of(shapes, rows.shape[job])):
        note_alone(kept, book.node[rows.place[job] + task], rules.most)
    remove(w.queue, rank)
    number[FREE_NOW] -= shapes[rows.shape[job], S_SIZE]
    number[WAITING_NOW] -= 1
    part = w.component[shapes[rows.shape[job], S_CLASS]]
    if next_rank(w.queue, w.first_rank[part]) < rank:
        w.believed[number[STARTED]] = job
        number[STARTED] += 1
