"""Sorting the free GPUs of a finished replay into the ledger's classes, instant by instant."""

from __future__ import annotations

from typing import Any, NamedTuple

from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.packing.fragmentation import unusable
from scheduler_advisor.engine.scored import typical_in
from scheduler_advisor.engine.waiting import JOBS, MAX_JOBS, MAX_MILLI, MILLI
from scheduler_advisor.engine.world import COUNTED

HELD, FAILED, DRAINED, RESERVED, GANG_WAIT, NO_CPU, NO_MEM, SHAPE, BLOCKED, FREE = range(10)
# Columns of Walk.jobs
(
    J_START,
    J_END,
    J_ELIGIBLE,
    J_PLACE,
    J_TASKS,
    J_GPU,
    J_CPU,
    J_MEM,
    J_MILLI,
    J_REST,
    J_EXCLUSIVE,
    J_CLASS,
    J_ORDER,
) = range(13)
JOB_COLUMNS = 13
# Columns of Walk.nodes: free and total amounts, group, model bit, how often failed and drained now,
# usable milli-GPUs that nobody claims.
N_FREE, N_CPU, N_MEM, N_ALL, N_ALL_CPU, N_ALL_MEM, N_GROUP, N_MODEL = range(8)
N_FAILED, N_DRAINED, N_CLAIM = 8, 9, 10
NODE_COLUMNS = 11
OUT_FAIL, OUT_DRAIN = 0, 1  # kinds in Walk.outages: [event] -> time, kind, node, +1 or -1
WHOLE = 1000
NEVER = 1 << 62


class Walk(NamedTuple):
    """What is walked over; `turns`: jobs by start, by end, by arrival; nodes by name."""

    jobs: Any
    nodes: Any
    place: Any  # [task] -> node, and the GPUs where shares are told apart
    share: Any  # [node, GPU] -> idle thousandths; the last row is for counting
    turns: Any
    by_name: Any
    outages: Any
    windows: Any  # [reservation] -> since, until, then 1 for each node that it covers
    member: Any
    limits: Any
    of_job: Any
    typical: Any
    queue: Any
    shares: int  # 1 where GPUs are told apart
    headroom: int
    profile_cpu: int
    profile_mem: int


@kernel
def move(w: Walk, job: int, sign: int) -> None:
    """The job's tasks leave their nodes (+1) or come to them (-1)."""
    row = w.jobs[job]
    size = 0
    for task in range(row[J_TASKS] + (1 if row[J_REST] != 0 else 0)):
        node = w.place[row[J_PLACE] + task, 0]
        last = task == row[J_TASKS]
        milli = row[J_REST] * WHOLE if last else row[J_GPU] * WHOLE + row[J_MILLI]
        size += milli
        if row[J_EXCLUSIVE] != 0:
            for column in range(3):
                w.nodes[node, column] = w.nodes[node, N_ALL + column] if sign > 0 else 0
        else:
            per = max(row[J_GPU], 1)
            w.nodes[node, N_FREE] += sign * milli
            w.nodes[node, N_CPU] += sign * (
                -(-row[J_CPU] * row[J_REST] // per) if last else row[J_CPU]
            )
            w.nodes[node, N_MEM] += sign * (
                -(-row[J_MEM] * row[J_REST] // per) if last else row[J_MEM]
            )
        if w.shares != 0:
            held = w.place[row[J_PLACE] + task, 1]
            if row[J_MILLI] != 0 and not last and row[J_EXCLUSIVE] == 0:
                w.share[node, held] += sign * row[J_MILLI]
            else:
                for gpu in range(w.nodes[node, N_ALL] // WHOLE):
                    if (held >> gpu) & 1:
                        w.share[node, gpu] = WHOLE if sign > 0 else 0
    for at in range(w.of_job.shape[1]):
        one = w.of_job[job, at]
        if one >= 0:
            counter = one & (COUNTED - 1)
            w.limits[counter, MILLI] -= sign * size
            w.limits[counter, JOBS] -= sign


@leaf
def reserved(w: Walk, node: int, now: int) -> bool:
    found = False
    for one in range(len(w.windows)):
        covers = w.windows[one, 2 + node] != 0
        if covers and w.windows[one, 0] <= now < w.windows[one, 1]:
            found = True
            break
    return found


@kernel
def sort_nodes(w: Walk, now: int, out: Any) -> int:
    """What is held, away, reserved or of no use by CPU or memory; the rest may be claimed."""
    left = 0
    headroom = w.headroom
    for at in range(len(w.by_name)):
        node = w.by_name[at]
        row = w.nodes[node]
        room = row[N_FREE]
        out[HELD] += row[N_ALL] - room
        row[N_CLAIM] = 0
        if row[N_FAILED] > 0:
            out[FAILED] += room
            continue
        if row[N_DRAINED] > 0:
            out[DRAINED] += room
            continue
        kept = room
        if not reserved(w, node, now):
            kept = min(room, headroom)
            headroom -= kept
        out[RESERVED] += kept
        room -= kept
        by_cpu = room if w.profile_cpu == 0 else WHOLE * (row[N_CPU] // w.profile_cpu)
        by_mem = room if w.profile_mem == 0 else WHOLE * (row[N_MEM] // w.profile_mem)
        usable = min(room, min(by_cpu, by_mem))
        out[NO_CPU if by_cpu <= by_mem else NO_MEM] += room - usable
        row[N_CLAIM] = usable
        left += usable
    return left


@leaf
def over_limit(w: Walk, job: int, size: int) -> bool:
    over = False
    for at in range(w.of_job.shape[1]):
        one = w.of_job[job, at]
        if 0 <= one < COUNTED and (
            w.limits[one, MILLI] + size > w.limits[one, MAX_MILLI]
            or w.limits[one, JOBS] >= w.limits[one, MAX_JOBS]
        ):
            over = True
    return over


@kernel
def claim(w: Walk, job: int, size: int, out: Any) -> int:
    """The job claims what is free and says why it does not run there; returns the milli-GPUs."""
    row = w.jobs[job]
    need = row[J_GPU] * WHOLE + row[J_MILLI]
    tasks = row[J_TASKS] + (1 if row[J_REST] != 0 else 0)
    there = 0
    by_gpu = 0
    by_cpu = 0
    fits = 0
    for node in range(len(w.nodes)):
        if w.member[row[J_CLASS], w.nodes[node, N_GROUP]] == 0:
            continue
        free = w.nodes[node, N_CLAIM]
        there += free
        times = free // need if need > 0 else tasks
        by_gpu += times
        if row[J_CPU] > 0:
            times = min(times, w.nodes[node, N_CPU] // row[J_CPU])
        by_cpu += times
        if row[J_MEM] > 0:
            times = min(times, w.nodes[node, N_MEM] // row[J_MEM])
        fits += times
    kind = GANG_WAIT
    if fits >= tasks:
        kind = BLOCKED
    elif over_limit(w, job, size):
        return 0
    elif by_gpu >= tasks:
        kind = NO_CPU if by_cpu < tasks else NO_MEM
    elif there >= size:
        kind = SHAPE
    taken = min(size, there)
    out[kind] += taken
    # Claimed in ascending order of what is free on the node, then of its place in the cluster.
    left = taken
    while left > 0:
        least = -1
        for node in range(len(w.nodes)):
            free = w.nodes[node, N_CLAIM]
            usable = w.member[row[J_CLASS], w.nodes[node, N_GROUP]] != 0
            if usable and free > 0 and (least < 0 or free < w.nodes[least, N_CLAIM]):
                least = node
        part = min(left, w.nodes[least, N_CLAIM])
        w.nodes[least, N_CLAIM] -= part
        left -= part
    return taken


@kernel
def fragmentation(w: Walk) -> int:
    """F of the nodes that are there, times the typical tasks in all."""
    typical = typical_in(w.typical)
    total = 0
    spare = len(w.share) - 1
    for node in range(len(w.nodes)):
        row = w.nodes[node]
        if row[N_FAILED] + row[N_DRAINED] > 0:
            continue
        gpus = row[N_ALL] // WHOLE
        at = node
        if w.shares == 0:
            at = spare
            for gpu in range(gpus):
                w.share[at, gpu] = max(0, min(WHOLE, row[N_FREE] - gpu * WHOLE))
        total += unusable(typical, row[N_CPU], w.share, at, gpus, row[N_MODEL])
    return total


@leaf
def arrive(w: Walk, job: int, waiting: int) -> int:
    """Puts the job into the queue at its place; returns how many wait."""
    slot = waiting
    while slot > 0 and w.jobs[w.queue[slot - 1], J_ORDER] > w.jobs[job, J_ORDER]:
        w.queue[slot] = w.queue[slot - 1]
        slot -= 1
    w.queue[slot] = job
    return waiting + 1


@leaf
def stay(w: Walk, waiting: int, now: int) -> int:
    """Drops those from the queue who have started; returns how many wait."""
    kept = 0
    for slot in range(waiting):
        if w.jobs[w.queue[slot], J_START] > now:
            w.queue[kept] = w.queue[slot]
            kept += 1
    return kept


@leaf
def go_away(w: Walk, happened: int, now: int) -> int:
    """Nodes fail, drain and come back until `now`; returns how many events there were."""
    while happened < len(w.outages) and w.outages[happened, 0] <= now:
        column = N_FAILED if w.outages[happened, 1] == OUT_FAIL else N_DRAINED
        w.nodes[w.outages[happened, 2], column] += w.outages[happened, 3]
        happened += 1
    return happened


@leaf
def turn(w: Walk, which: int, at: int, column: int) -> int:
    """When the next job of that order has its turn; NEVER when all have had it."""
    if at == w.turns.shape[1] or w.turns[which, at] < 0:
        return NEVER
    return w.jobs[w.turns[which, at], column]


@leaf
def follow(w: Walk, started: int, ended: int, now: int) -> tuple[int, int]:
    """Lets jobs start and end until `now`; returns how many did. At one instant those end who ran,
    then those of no length come and go one by one, then the others start."""
    while True:
        start = turn(w, 0, started, J_START)
        end = turn(w, 1, ended, J_END)
        if min(start, end) > now:
            break
        if start < end or (start == end and w.turns[0, started] == w.turns[1, ended]):
            move(w, w.turns[0, started], -1)
            started += 1
        else:
            move(w, w.turns[1, ended], 1)
            ended += 1
    return started, ended


@kernel
def walk(w: Walk, at: Any, milli: Any, queued: Any, demand: Any, frag: Any) -> None:
    """Moves jobs on and off the nodes in order of time; at each sample sorts the free GPUs."""
    started = ended = came = happened = waiting = 0
    for sample in range(len(at)):
        now = at[sample]
        started, ended = follow(w, started, ended, now)
        while turn(w, 2, came, J_ELIGIBLE) <= now:
            job = w.turns[2, came]
            came += 1
            if w.jobs[job, J_START] > now:
                waiting = arrive(w, job, waiting)
        happened = go_away(w, happened, now)
        waiting = stay(w, waiting, now)
        queued[sample] = waiting
        left = sort_nodes(w, now, milli[sample])
        for slot in range(waiting):
            row = w.jobs[w.queue[slot]]
            size = row[J_TASKS] * (row[J_GPU] * WHOLE + row[J_MILLI]) + row[J_REST] * WHOLE
            demand[sample] += size
            if left > 0 and size > 0:
                left -= claim(w, w.queue[slot], size, milli[sample])
        milli[sample, FREE] += left
        frag[sample] = fragmentation(w)
