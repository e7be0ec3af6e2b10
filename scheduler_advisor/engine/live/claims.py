"""Rooms that are being made: whom a job waits for, what is kept for it, and what becomes of both
when a node on which it was to run goes away."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.live.achieved import SUSPEND
from scheduler_advisor.engine.live.compiled import kernel, leaf
from scheduler_advisor.engine.live.ends import push_believed, push_end
from scheduler_advisor.engine.live.going import clear_nodes, hold, off_the_list, set_going
from scheduler_advisor.engine.live.hope import grow_for_all, uncount_stoppable
from scheduler_advisor.engine.live.order import enqueue
from scheduler_advisor.engine.live.tuples import (
    CLAIMS,
    EPOCH,
    EVICTED,
    FALLEN,
    FREE,
    KEPT,
    LEAVES,
    LONG_EPOCH,
    NONE,
    NOW,
    PINNED,
    PLAIN,
    RESOLVED,
    WRITING,
    Live,
    Terms,
)
from scheduler_advisor.engine.outside import on_node
from scheduler_advisor.engine.place import move_job, take_plain, tasks_of
from scheduler_advisor.engine.steps import milli_held, wall_of
from scheduler_advisor.engine.world import (
    ALL_CPU,
    ALL_GPU,
    ALL_MEM,
    DOWN,
    EXCLUSIVE,
    OVER,
    RUNS,
    S_CPU,
    S_FLAGS,
    S_GPU,
    S_MEM,
    S_REST_CPU,
    S_REST_GPU,
    S_REST_MEM,
    S_TASKS,
    TASKS,
    WHOLE,
    Rules,
    World,
)


@kernel
def claim(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, victims: int) -> None:
    """The victims are told to leave; what the job needs beyond theirs is kept for it."""
    now = z[NOW]
    crowd = live.crowd
    needed_beyond(w, live, rules, terms, z, job, victims, 1)
    for at in range(victims):
        victim = crowd.chosen[at]
        uncount_stoppable(w, live, victim)
        live.fate.kind[victim] = EVICTED
        live.fate.claim[victim] = job
        live.fate.natural[victim] = w.runs.end[victim]
        w.runs.phase[victim] = LEAVES
        if now + terms.grace < w.runs.end[victim]:
            w.runs.end[victim] = now + terms.grace
            push_end(w, live, z, victim, now + terms.grace)
        crowd.victims[1 + crowd.victims[0]] = victim
        crowd.victims[0] += 1
    crowd.claimants[1 + crowd.claimants[0]] = job
    crowd.claimants[0] += 1
    live.fate.kind[job] = CLAIMS
    live.fate.left[job] = victims
    w.runs.phase[job] = RUNS
    w.runs.start[job] = now + terms.grace
    w.runs.end[job] = now + terms.grace + wall_of(w.rows, w.runs, 1, job)
    push_believed(w, live, z, job)
    hold(w, live, rules, terms, job, now, 1)


@kernel
def needed_beyond(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, victims: int, sign: int
) -> None:
    """Keeps (+1) or gives back (-1) what the job needs on its booked nodes beyond what its victims
    (in crowd.chosen) hold there. Each node once."""
    shape = w.rows.shape[job]
    entry = w.rows.place[job]
    tasks = tasks_of(w.shapes, shape)
    for task in range(tasks):
        node = w.book.node[entry + task]
        again = False
        for before in range(task):
            again = again or w.book.node[entry + before] == node
        if again:
            continue
        gpu, cpu, mem = takes_there(w, rules, job, node, 1)
        for at in range(victims):
            less_gpu, less_cpu, less_mem = takes_there(w, rules, live.crowd.chosen[at], node, 0)
            gpu -= less_gpu
            cpu -= less_cpu
            if terms.mode != SUSPEND:
                mem -= less_mem
        gpu = max(0, gpu)
        take_plain(
            w.nodes, w.buckets, rules.most, node, sign * gpu, sign * max(0, cpu),
            sign * max(0, mem),
        )  # fmt: skip
        w.nodes.table[node, TASKS] += sign
        z[KEPT] += sign * gpu * WHOLE
        if w.nodes.table[node, DOWN] == 0:
            z[FREE] -= sign * gpu * WHOLE


@leaf
def takes_there(w: World, rules: Rules, job: int, node: int, is_new: int) -> tuple[int, int, int]:
    """GPUs, CPU and memory that the job's booked tasks take on the node."""
    shape = w.rows.shape[job]
    entry = w.rows.place[job]
    gpu = 0
    cpu = 0
    mem = 0
    for task in range(tasks_of(w.shapes, shape)):
        if w.book.node[entry + task] != node:
            continue
        if w.shapes[shape, S_FLAGS] & EXCLUSIVE:
            gpu += w.nodes.table[node, ALL_GPU]
            cpu += w.nodes.table[node, ALL_CPU]
            mem += w.nodes.table[node, ALL_MEM]
        else:
            rest = task == w.shapes[shape, S_TASKS]
            gpu += w.shapes[shape, S_REST_GPU if rest else S_GPU]
            cpu += w.shapes[shape, S_REST_CPU if rest else S_CPU]
            mem += w.shapes[shape, S_REST_MEM if rest else S_MEM]
    return gpu, cpu, mem


@kernel
def resolve(w: World, live: Live, rules: Rules, terms: Terms, z: Any, now: int) -> None:
    """Starts the jobs whose victims have all left, lowest first; the victims queue again."""
    while z[RESOLVED] > 0:
        job = NONE
        for at in range(live.crowd.claimants[0]):
            one = live.crowd.claimants[1 + at]
            if live.fate.left[one] == 0 and (job == NONE or one < job):
                job = one
        z[RESOLVED] -= 1
        take_room(w, live, rules, terms, z, job, now)


@kernel
def part_with(live: Live, job: int) -> int:
    """Takes the job off the list of those who wait for room, and its victims, who are in
    crowd.chosen now, off theirs; returns how many."""
    crowd = live.crowd
    kept = 0
    victims = 0
    for at in range(crowd.victims[0]):
        other = crowd.victims[1 + at]
        if live.fate.claim[other] == job:
            crowd.chosen[victims] = other
            victims += 1
        else:
            crowd.victims[1 + kept] = other
            kept += 1
    crowd.victims[0] = kept
    kept = 0
    for at in range(crowd.claimants[0]):
        if crowd.claimants[1 + at] != job:
            crowd.claimants[1 + kept] = crowd.claimants[1 + at]
            kept += 1
    crowd.claimants[0] = kept
    return victims


@kernel
def release(w: World, live: Live, rules: Rules, terms: Terms, z: Any, other: int, now: int) -> None:
    """A victim that has left gives its room away, and queues again unless it had ended."""
    z[KEPT] -= milli_held(w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, other, 0)
    z[FREE] += milli_held(w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, other, 1)
    kind = live.fate.kind[other]
    pinned = terms.mode == SUSPEND and kind != PLAIN and kind != FALLEN
    clear_nodes(w, rules, terms, other, 0 if pinned else 1, 1)
    off_the_list(w, live, z, other)
    live.fate.claim[other] = NONE
    if kind == PLAIN:
        w.runs.phase[other] = OVER
        return
    live.fate.kind[other] = PINNED if pinned else PLAIN
    enqueue(w, live, terms, z, other, now)


@kernel
def take_room(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, now: int) -> None:
    """The victims of `job` have left: it starts on the nodes that were kept."""
    victims = part_with(live, job)
    needed_beyond(w, live, rules, terms, z, job, victims, -1)
    for at in range(victims):
        release(w, live, rules, terms, z, live.crowd.chosen[at], now)
    grow_for_all(live.hope, z)
    z[EPOCH] += 1
    z[LONG_EPOCH] += 1
    move_job(w.nodes, w.buckets, w.shapes, w.rows, w.book, rules.most, rules.shares, job, -1)
    set_going(w, live, rules, terms, z, job, now, 1)


@kernel
def give_up(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, now: int) -> None:
    """A node on which `job` was to run is gone: it queues again. Who has left for it queues too;
    who was told to leave still goes, for nobody."""
    if live.fate.left[job] == 0:
        z[RESOLVED] -= 1
    victims = part_with(live, job)
    needed_beyond(w, live, rules, terms, z, job, victims, -1)
    for at in range(victims):
        other = live.crowd.chosen[at]
        if live.fate.kind[other] == EVICTED or live.fate.kind[other] == WRITING:
            live.fate.claim[other] = NONE
        else:
            release(w, live, rules, terms, z, other, now)
    live.fate.kind[job] = PLAIN
    live.fate.left[job] = 0
    hold(w, live, rules, terms, job, now, -1)
    enqueue(w, live, terms, z, job, now)


@kernel
def give_up_on(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, node: int, now: int
) -> None:
    """The node takes no more tasks: whoever was to run on it gives up."""
    at = 0
    while at < live.crowd.claimants[0]:
        job = live.crowd.claimants[1 + at]
        if on_node(w.shapes, w.rows, w.book, job, node):
            give_up(w, live, rules, terms, z, job, now)
        else:
            at += 1
