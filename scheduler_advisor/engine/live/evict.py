"""Stopping jobs: what they keep, how long they take to leave, and who gets their room."""

from __future__ import annotations

from typing import Any

from scheduler_advisor.engine.heap import JOB_BITS, JOB_MASK, push
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.live.order import attained, enqueue, level_of
from scheduler_advisor.engine.live.queues import count
from scheduler_advisor.engine.live.tuples import (
    BELIEVED,
    CLAIMS,
    ENDS,
    EPOCH,
    EVICTED,
    FREE,
    GONE,
    HOLDERS,
    KEPT,
    LEAVES,
    LONG_EPOCH,
    NONE,
    PINNED,
    PLAIN,
    RESOLVED,
    RUNNING,
    TIMERS,
    WRITERS,
    WRITING,
    WRITTEN_AT,
    Live,
    Terms,
)
from scheduler_advisor.engine.parts.net import slow_down
from scheduler_advisor.engine.place import move_job, take_plain, tasks_of
from scheduler_advisor.engine.steps import (
    begin,
    believed_end,
    milli_held,
    restore_of,
    swept,
    writes_of,
)
from scheduler_advisor.engine.waiting import count_in
from scheduler_advisor.engine.world import (
    ALL_CPU,
    ALL_GPU,
    ALL_MEM,
    EXCLUSIVE,
    M_EVERY,
    M_LEFT,
    M_LOST,
    M_OVERHEAD,
    M_WRITE,
    OVER,
    RUNS,
    S_CPU,
    S_FLAGS,
    S_GPU,
    S_MEM,
    S_REST_CPU,
    S_REST_GPU,
    S_REST_MEM,
    S_SIZE,
    S_TASKS,
    TASKS,
    Rows,
    Rules,
    Runs,
    World,
)

REQUEUE, SCRATCH, CHECKPOINT, SUSPEND = range(4)  # Terms.mode


@leaf
def dead(runs: Runs, live: Live, packed: int, job: int) -> bool:
    """Does the entry of the heap of ends belong to an attempt that is over?"""
    kind = live.fate.kind[job]
    going = (runs.phase[job] == RUNS and kind != CLAIMS) or (
        runs.phase[job] == LEAVES and kind == EVICTED
    )
    return not going or runs.end[job] != packed >> JOB_BITS


@kernel
def swept_ends(runs: Runs, live: Live, heap: Any, size: int) -> int:
    """The heap of ends without those of attempts that are over; returns the new size."""
    kept = 0
    for at in range(size):
        packed = heap[at]
        if not dead(runs, live, packed, packed & JOB_MASK):
            kept = push(heap, kept, packed)
    return kept


@leaf
def push_end(w: World, live: Live, z: Any, job: int, end: int) -> None:
    if z[ENDS] + 1 >= len(live.ends):
        z[ENDS] = swept_ends(w.runs, live, live.ends, z[ENDS])
    z[ENDS] = push(live.ends, z[ENDS], (end << JOB_BITS) | job)


@leaf
def push_believed(w: World, live: Live, z: Any, job: int) -> None:
    size = z[BELIEVED]
    if size + 1 >= len(live.believed) or size > 4 * z[RUNNING] + 64:
        size = swept(w.rows, w.runs, live.believed, size, 1)
    packed = (believed_end(w.rows, w.runs, job) << JOB_BITS) | job
    z[BELIEVED] = push(live.believed, size, packed)


@leaf
def rings(w: World, live: Live, terms: Terms, packed: int) -> bool:
    """Is the timer still meant: a minimum run time reached, a level of service passed?"""
    job = packed & JOB_MASK
    at = packed >> JOB_BITS
    if w.runs.phase[job] != RUNS or live.fate.kind[job] != PLAIN:
        return False
    if terms.min_run != 0 and w.runs.start[job] + terms.min_run == at:
        return True
    if terms.has_levels == 0:
        return False
    size = w.shapes[w.rows.shape[job], S_SIZE]
    now = level_of(live.levels, attained(w.rows, w.runs, size, job, at))
    return now != level_of(live.levels, attained(w.rows, w.runs, size, job, at - 1))


@kernel
def swept_timers(w: World, live: Live, terms: Terms, size: int) -> int:
    """The timers that are still meant; returns how many."""
    kept = 0
    for at in range(size):
        packed = live.timers[at]
        if rings(w, live, terms, packed):
            kept = push(live.timers, kept, packed)
    return kept


@kernel
def push_timers(w: World, live: Live, terms: Terms, z: Any, job: int, now: int) -> None:
    """When something about the running job changes, though nothing ends."""
    end = w.runs.end[job]
    if z[TIMERS] + 2 >= len(live.timers):
        z[TIMERS] = swept_timers(w, live, terms, z[TIMERS])
    if terms.min_run != 0 and live.fate.stoppable[job] != 0 and now + terms.min_run < end:
        when = now + terms.min_run
        if w.runs.start[job] == now:
            z[TIMERS] = push(live.timers, z[TIMERS], (when << JOB_BITS) | job)
    size = w.shapes[w.rows.shape[job], S_SIZE]
    if terms.has_levels != 0 and size > 0:
        service = attained(w.rows, w.runs, size, job, now)
        for at in range(len(live.levels)):
            if live.levels[at] > service:
                when = now + -(-(live.levels[at] - service) // size)
                if when < end:
                    z[TIMERS] = push(live.timers, z[TIMERS], (when << JOB_BITS) | job)
                break


@kernel
def set_going(
    w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, now: int, counted: int
) -> None:
    """The job's tasks are on their nodes: it runs from now. `counted`: its queue and limits count
    it already."""
    if terms.slows != 0:
        slow_down(w.nodes, live.net, w.shapes, w.rows, w.runs, w.book, rules.shares, 1, job)
    end = begin(w.rows, w.runs, 1, job, now)
    live.fate.kind[job] = PLAIN
    size = w.shapes[w.rows.shape[job], S_SIZE]
    if counted == 0:
        hold(w, live, rules, terms, job, now, 1)
    push_end(w, live, z, job, end)
    live.crowd.at[job] = z[RUNNING]
    live.crowd.running[z[RUNNING]] = job
    z[RUNNING] += 1
    push_believed(w, live, z, job)
    z[FREE] -= milli_held(w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, job, 1)
    z[HOLDERS] += milli_held(w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, job, 0)
    if size >= 0 and terms.preempts != 0 and (terms.min_run != 0 or terms.has_levels != 0):
        push_timers(w, live, terms, z, job, now)


@leaf
def hold(w: World, live: Live, rules: Rules, terms: Terms, job: int, now: int, sign: int) -> None:
    """The job begins (+1) or ceases (-1) to count in its queues and limits."""
    size = w.shapes[w.rows.shape[job], S_SIZE]
    count(
        live.tree, terms, live.total, live.tree.leaf[job], sign * size,
        sign * live.size_cpu[job], sign * live.size_mem[job], now,
    )  # fmt: skip
    if rules.limits != 0:
        count_in(w.limits, size, job, sign)


@leaf
def off_the_list(live: Live, z: Any, job: int) -> None:
    """The job no longer runs."""
    z[RUNNING] -= 1
    last = live.crowd.running[z[RUNNING]]
    live.crowd.running[live.crowd.at[job]] = last
    live.crowd.at[last] = live.crowd.at[job]


@kernel
def progress(rows: Rows, runs: Runs, job: int, now: int) -> tuple[int, int]:
    """Seconds of work saved by checkpoints of this attempt, and done in it."""
    more = runs.more
    worked = max(0, now - runs.start[job] - restore_of(more, rows.run, job))
    every = more[job, M_EVERY]
    if every == 0:
        return 0, worked
    cycle = every + more[job, M_WRITE]
    writes = writes_of(more, job)
    cycles = min(writes, worked // cycle)
    saved = cycles * every
    since = worked - cycles * cycle
    return saved, saved + (since if cycles == writes else min(since, every))


@kernel
def settle(rows: Rows, runs: Runs, mode: int, job: int, now: int) -> None:
    """The attempt stops at `now`: what it has achieved, lost and spent."""
    more = runs.more
    saved, done = progress(rows, runs, job, now)
    more[job, M_OVERHEAD] += now - runs.start[job] - done
    if mode == SCRATCH:
        more[job, M_LOST] += done + rows.run[job] - more[job, M_LEFT]
        more[job, M_LEFT] = rows.run[job]
    elif mode == REQUEUE:
        more[job, M_LOST] += done - saved
        more[job, M_LEFT] -= saved
    else:
        more[job, M_LEFT] -= done
    runs.end[job] = now


@kernel
def clear_nodes(w: World, rules: Rules, terms: Terms, job: int, done: int, sign: int) -> None:
    """The job's tasks leave their nodes (+1) or are put back (-1); one that is suspended keeps its
    memory."""
    move_job(w.nodes, w.buckets, w.shapes, w.rows, w.book, rules.most, rules.shares, job, sign)
    if terms.mode != SUSPEND or done != 0:
        return
    shape = w.rows.shape[job]
    for task in range(tasks_of(w.shapes, shape)):
        rest = task == w.shapes[shape, S_TASKS]
        mem = w.shapes[shape, S_REST_MEM if rest else S_MEM]
        node = w.book.node[w.rows.place[job] + task]
        take_plain(w.nodes, w.buckets, rules.most, node, 0, 0, sign * mem)


@kernel
def leave(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, now: int) -> None:
    """The attempt is over: its room is free, or kept for the job that it was made for."""
    hold(w, live, rules, terms, job, now, -1)
    milli = milli_held(w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, job, 0)
    z[HOLDERS] -= milli
    claim = live.fate.claim[job]
    if claim != NONE:
        z[KEPT] += milli
        live.fate.left[claim] -= 1
        w.runs.phase[job] = LEAVES
        if live.fate.kind[job] == EVICTED:
            live.fate.kind[job] = GONE
        if live.fate.left[claim] == 0:
            z[RESOLVED] += 1
        return
    off_the_list(live, z, job)
    z[FREE] += milli_held(w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, job, 1)
    clear_nodes(w, rules, terms, job, 1, 1)
    z[EPOCH] += 1
    z[LONG_EPOCH] += 1


@leaf
def rate_of(terms: Terms, writers: int) -> int:
    """KiB per second for each of those who write at once."""
    return max(1, terms.kib_s // max(1, writers))


@leaf
def kib_of(w: World, terms: Terms, job: int) -> int:
    return max(1, w.shapes[w.rows.shape[job], S_SIZE] * terms.kib_per_gpu // 1000)


@leaf
def next_written(live: Live, terms: Terms, z: Any) -> int:
    """When the next of those who write is done."""
    rate = rate_of(terms, z[WRITERS])
    least = 1 << 60
    for at in range(z[WRITERS]):
        least = min(least, live.crowd.left_kib[at])
    return z[WRITTEN_AT] + max(0, -(-least // rate))


@kernel
def write_on(w: World, live: Live, terms: Terms, z: Any, now: int) -> None:
    """Those who write share the bandwidth up to now."""
    rate = rate_of(terms, z[WRITERS])
    for at in range(z[WRITERS]):
        live.crowd.left_kib[at] -= rate * (now - z[WRITTEN_AT])
    z[WRITTEN_AT] = now


@kernel
def written(w: World, live: Live, rules: Rules, terms: Terms, z: Any, now: int) -> None:
    """Whoever has written its checkpoint leaves."""
    crowd = live.crowd
    at = 0
    while at < z[WRITERS]:
        if crowd.left_kib[at] > 0:
            at += 1
            continue
        job = crowd.writer[at]
        z[WRITERS] -= 1
        crowd.writer[at] = crowd.writer[z[WRITERS]]
        crowd.left_kib[at] = crowd.left_kib[z[WRITERS]]
        w.runs.more[job, M_OVERHEAD] += now - w.runs.end[job]
        w.runs.end[job] = now
        live.fate.kind[job] = EVICTED
        leave(w, live, rules, terms, z, job, now)


@kernel
def force_out(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, now: int) -> None:
    """Grace is over: the victim leaves, or begins to write its checkpoint."""
    settle(w.rows, w.runs, terms.mode, job, now)
    if terms.mode == CHECKPOINT and terms.kib_per_gpu > 0:
        live.fate.kind[job] = WRITING
        live.crowd.writer[z[WRITERS]] = job
        live.crowd.left_kib[z[WRITERS]] = kib_of(w, terms, job)
        z[WRITERS] += 1
        return
    leave(w, live, rules, terms, z, job, now)


@kernel
def needed_beyond(
    w: World, live: Live, rules: Rules, terms: Terms, job: int, victims: int, sign: int
) -> int:
    """Takes (+1) or gives back (-1) what the job needs on its booked nodes beyond what its victims
    (in crowd.chosen) hold there; returns the milli-GPUs. Each node once."""
    shape = w.rows.shape[job]
    entry = w.rows.place[job]
    tasks = tasks_of(w.shapes, shape)
    total = 0
    for task in range(tasks):
        node = w.book.node[entry + task]
        again = False
        for before in range(task):
            again = again or w.book.node[entry + before] == node
        if again:
            continue
        gpu, cpu, mem = on_node(w, rules, job, node, 1)
        for at in range(victims):
            less_gpu, less_cpu, less_mem = on_node(w, rules, live.crowd.chosen[at], node, 0)
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
        total += gpu * 1000
    return total


@leaf
def on_node(w: World, rules: Rules, job: int, node: int, is_new: int) -> tuple[int, int, int]:
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
def take_room(w: World, live: Live, rules: Rules, terms: Terms, z: Any, job: int, now: int) -> None:
    """The victims of `job` have left: it starts on the nodes that were kept."""
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
    extra = needed_beyond(w, live, rules, terms, job, victims, -1)
    z[KEPT] -= extra
    z[FREE] += extra
    for at in range(victims):
        other = crowd.chosen[at]
        milli = milli_held(w.nodes, w.shapes, w.rows, w.book, rules.plain_sizes, other, 0)
        z[KEPT] -= milli
        z[FREE] += milli
        natural = 1 if live.fate.kind[other] == PLAIN else 0
        clear_nodes(w, rules, terms, other, natural, 1)
        off_the_list(live, z, other)
        live.fate.claim[other] = NONE
        if natural != 0:
            w.runs.phase[other] = OVER
            continue
        live.fate.kind[other] = PLAIN
        if terms.mode == SUSPEND:
            live.fate.kind[other] = PINNED
        enqueue(w, live, terms, z, other, now)
    z[EPOCH] += 1
    z[LONG_EPOCH] += 1
    move_job(w.nodes, w.buckets, w.shapes, w.rows, w.book, rules.most, rules.shares, job, -1)
    set_going(w, live, rules, terms, z, job, now, 1)
