"""The driver of conservative backfill on nodes, where the plan is kept from pass to pass.

It decides what `drive_planned` decides, which makes the plan anew at each pass, with less to do:

- A job is planned when somebody behind it might start now, and no earlier.
- A job that has its place is looked at again only if what changed since could concern it.
- Whoever is shut out by what is planned before him is out for this pass; when all are, it is over.
"""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.drive import (
    EVENTS,
    EXAMINED,
    FREE,
    HELD,
    LAST,
    PASSES,
    QUEUED,
    WAITING,
)
from scheduler_advisor.engine.heap import JOB_BITS, JOB_MASK, pop
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.kept import (
    CHANGED,
    ENDS,
    FREE_NOW,
    FRONT,
    LOOKED_AT,
    LOW,
    NOW,
    PASS,
    STARTED,
    TOP,
    WAITING_NOW,
    Kept,
    note_alone,
    plan_job,
)
from scheduler_advisor.engine.kept_changes import all_seen, job_changed
from scheduler_advisor.engine.kept_pass import (
    last_of,
    look_again,
    look_for_hopes,
    open_from,
    plan_on,
)
from scheduler_advisor.engine.kept_search import rule_of
from scheduler_advisor.engine.place import move_job, tasks_of
from scheduler_advisor.engine.plan import book_job
from scheduler_advisor.engine.policy import Backfill, Placement, Policy
from scheduler_advisor.engine.profile import forget
from scheduler_advisor.engine.ranks import insert, next_rank
from scheduler_advisor.engine.steps import LATER, finish
from scheduler_advisor.engine.world import BEST_FIT, S_CLASS, S_SIZE, Rules, World

MOST_GPUS = 128  # of a node; what is remembered of it grows with them


def keeps_plan(jobs: Jobs, cluster: Cluster) -> bool:
    """Nothing but arrivals and ends changes a plan for these jobs, so that it can be kept."""
    writes = (jobs.checkpoint_every > 0) & (jobs.checkpoint_cost > 0)
    return bool(
        not (cluster.outages or cluster.limits or cluster.reservations or len(jobs.parent_of))
        and not (jobs.gpu_milli.any() or jobs.exclusive.any() or writes.any())
        and cluster.gpus.max(initial=0) <= MOST_GPUS
    )


def suits_kept(jobs: Jobs, cluster: Cluster, policy: Policy) -> bool:
    """A policy of this driver: its plans are not compressed, nobody is passed over for his length,
    and nodes are not drawn."""
    return (
        policy.backfill is Backfill.CONSERVATIVE
        and policy.placement is not Placement.RANDOM
        and not policy.backfill_max_limit_s
        and keeps_plan(jobs, cluster)
    )


@leaf
def end_job(w: World, rules: Rules, kept: Kept, packs: int) -> None:
    """The running job that ends first does; what it would still have held is free."""
    shapes, rows, book, now = w.shapes, w.rows, w.book, kept.number[NOW]
    job = w.ends[0] & JOB_MASK
    kept.number[ENDS] = pop(w.ends, kept.number[ENDS])
    kept.number[FREE_NOW] += shapes[rows.shape[job], S_SIZE]
    until = w.runs.start[job] + kept.length[job]
    if until > now:
        plan_job(w.nodes, shapes, rows, book, kept, job, now, until, -1)
        book_job(w.nodes, shapes, rows, book, kept.running, job, now, until, -1)
        job_changed(kept, shapes, rows, book, job, now, until, 1, packs)
    for task in range(tasks_of(shapes, rows.shape[job])):
        node = book.node[rows.place[job] + task]
        forget(kept.plan, node, now)
        forget(kept.running, node, now)
        note_alone(kept, node, rules.most)
    finish(rows, w.runs, 0, job)
    move_job(w.nodes, w.buckets, shapes, rows, book, rules.most, 0, job, 1)


@leaf
def arrive(w: World, kept: Kept, job: int) -> None:
    """The job waits from now on, without a place."""
    rank = w.rank[job]
    insert(w.queue, rank)
    kept.number[WAITING_NOW] += 1
    queue = kept.queue[w.component[w.shapes[w.rows.shape[job], S_CLASS]]]
    if rank < queue[FRONT]:
        queue[LOW] = min(queue[LOW], rank)


@leaf
def run_pass(w: World, rules: Rules, kept: Kept, packs: int) -> None:
    """Starts whoever starts now, in every queue."""
    seen = True  # by everybody who has a place: all that has changed
    for part in range(rules.components):
        queue = kept.queue[part]
        last = last_of(w, rules, part)
        first = look_again(w, rules, kept, part, last, packs)
        hopes = look_for_hopes(w, rules, kept, first, last)
        if hopes != 0:
            open_from(w, kept, part, first)
            first = plan_on(w, rules, kept, part, first, hopes)
            queue[FRONT] = first
        seen = seen and next_rank(w.queue, first) > queue[TOP]
    if kept.number[CHANGED] != 0 and seen:
        all_seen(kept)
    for one in range(kept.number[STARTED]):  # those before them see them from now on
        job, now = w.believed[one], kept.number[NOW]
        until = now + kept.length[job]
        job_changed(kept, w.shapes, w.rows, w.book, job, now, until, 0, packs)
    kept.number[STARTED] = 0


@kernel
def drive_kept(w: World, rules: Rules, kept: Kept, totals: Any) -> None:
    """Replays all jobs; see the module."""
    number = kept.number
    jobs = len(w.arrival)
    packs = int(rule_of(rules) == BEST_FIT)
    number[NOW] = -(1 << 60)
    number[FREE_NOW] = totals[FREE]
    arrived = events = held_sum = queue_sum = 0
    due = False
    next_arrival = w.eligible[w.arrival[0]] if jobs > 0 else LATER
    while True:
        at = next_arrival
        if number[ENDS] > 0:
            at = min(at, w.ends[0] >> JOB_BITS)
        if at == LATER:
            break
        at = max(at, number[NOW])
        held_sum += (totals[FREE] - number[FREE_NOW]) * (at - number[NOW])
        queue_sum += number[WAITING_NOW] * (at - number[NOW])
        number[NOW] = at
        while number[ENDS] > 0 and w.ends[0] >> JOB_BITS <= at:
            end_job(w, rules, kept, packs)
            events += 1
            due = True
        while next_arrival <= at:
            arrive(w, kept, w.arrival[arrived])
            arrived += 1
            next_arrival = w.eligible[w.arrival[arrived]] if arrived < jobs else LATER
            events += 1
            due = True
        if due and number[WAITING_NOW] != 0 and number[FREE_NOW] >= rules.smallest_milli:
            number[PASS] += 1
            run_pass(w, rules, kept, packs)
            due = False
    totals[FREE] = number[FREE_NOW]
    totals[EVENTS] = events
    totals[PASSES] = number[PASS]
    totals[HELD] = held_sum
    totals[QUEUED] = queue_sum
    totals[WAITING] = number[WAITING_NOW]
    totals[LAST] = number[NOW]
    totals[EXAMINED] = number[LOOKED_AT]
