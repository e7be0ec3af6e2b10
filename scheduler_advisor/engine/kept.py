"""A plan that is kept: what changed in it since a queued job got its place there.

Every queued job up to some rank has its place in the plan. When something changes on a node, only
jobs that see the change there need be looked at: those that could now start earlier, or on a node
that the placement rule prefers, or whose place is gone. All others would be planned as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduler_advisor.engine.gaps import Gaps, empty_gaps
from scheduler_advisor.engine.jit import kernel, leaf
from scheduler_advisor.engine.place import tasks_of
from scheduler_advisor.engine.plan import NOWHEN, book_job
from scheduler_advisor.engine.profile import (
    EVER,
    NO_STEP,
    P_CPU,
    P_GPU,
    P_MEM,
    P_NEXT,
    P_TIME,
    Profile,
    empty_profile,
)
from scheduler_advisor.engine.ranks import NONE
from scheduler_advisor.engine.steps import LATER
from scheduler_advisor.engine.world import (
    ALL_CPU,
    ALL_GPU,
    ALL_MEM,
    S_CPU,
    S_GPU,
    S_MEM,
    S_TASKS,
    Book,
    Nodes,
    Rows,
    World,
)

# Columns of Kept.spot: is the node listed; hulls of when more, and when less, is free than before.
LISTED, MORE_SINCE, MORE_UNTIL, LESS_SINCE, LESS_UNTIL, GAINS = 0, 1, 2, 3, 4, 5
# Entries of Kept.number: lengths of lists, stamps, and the counts of a replay
CHANGED, GAINING, STARTED, STAMP, TRY, WITNESS = 0, 1, 2, 3, 4, 5
NOW, FREE_NOW, WAITING_NOW, ENDS, PASS, LOOKED_AT = 6, 7, 8, 9, 10, 11
NUMBERS = 12
# Columns of Kept.queue: up to which rank jobs are booked, the lowest rank below that has no place,
# the highest that ever had one, and when the next job that need not be looked at again is due.
FRONT, LOW, TOP, DUE = 0, 1, 2, 3
UNPLANNED = -(1 << 61)  # the job has no place yet
T_STAMP, T_TIME = 0, 1  # columns of Kept.soonest
H_PASS, H_MAY, H_FAILS = 0, 1, 2  # columns of Kept.hope


class Kept(NamedTuple):
    """The plan of running and queued jobs, that of running ones alone, and each queued job's start
    and least free GPUs on its node. `listed` has the nodes that changed, `gains` those of them that
    may draw jobs."""

    plan: Profile
    running: Profile
    start: Any
    worth: Any
    spot: Any
    listed: Any
    gains: Any
    number: Any
    queue: Any
    length: Any  # how long the plan keeps room for a job
    gaps: Gaps
    alone: Any  # GPUs, node -> since when so many are free beside those who run
    soonest: Any  # shape -> the first instant at which it may gain from a change
    hope: Any  # shape -> may some job of it start now, and from which length on not
    when: Any  # node -> first room
    able: Any  # nodes that have room at some time
    fitting: Any  # those that have it at the time looked at
    room: Any  # node -> GPUs that are least free in a window
    least: Any  # node -> what is least free in a window
    hopes: Any  # ranks of those that may start now
    stood: Any  # nodes that a job's tasks had
    soon: Any  # the first instants at which there is room for so many tasks
    gpus_only: bool  # whoever has GPUs on a node has CPU and memory there


def empty_kept(world: World, most: int) -> Kept:
    """Nothing runs, nothing is planned; the largest node has `most` GPUs."""
    size, nodes, shapes = len(world.rows.run), len(world.nodes.table), len(world.shapes)
    bookings = len(world.book.node) + 1
    gpus = world.nodes.table[:, ALL_GPU]
    spot = np.zeros((nodes, 6), np.int64)
    spot[:, MORE_SINCE] = spot[:, LESS_SINCE] = NOWHEN
    spot[:, MORE_UNTIL] = spot[:, LESS_UNTIL] = -NOWHEN
    never = np.arange(most + 1)[:, None] > gpus[None, :]
    return Kept(
        empty_profile(world.nodes, bookings),
        empty_profile(world.nodes, bookings),
        np.full(size, UNPLANNED, np.int64),
        np.zeros(bookings, np.int64),
        spot,
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros(NUMBERS, np.int64),
        _queues(world),
        np.maximum(1, np.maximum(world.rows.run, world.rows.limit)),
        empty_gaps(most, nodes),
        np.where(never, NOWHEN, EVER).astype(np.int64),
        np.zeros((shapes, 2), np.int64),
        np.zeros((shapes, 3), np.int64),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros((nodes, 4), np.int64),
        np.zeros(size + 2, np.int64),
        np.zeros(len(world.book.node) + 1, np.int64),
        np.zeros(int(world.shapes[:, S_TASKS].max(initial=1)) + 1, np.int64),
        gpus_only(world),
    )


def _queues(world: World) -> Any:
    """Nobody has a place."""
    queues = np.zeros((len(world.first_rank) - 1, 4), np.int64)
    queues[:, FRONT] = world.first_rank[:-1]
    queues[:, LOW] = NONE
    queues[:, TOP] = -1
    queues[:, DUE] = LATER
    return queues


def gpus_only(world: World) -> bool:
    """Is nobody ever short of CPU or memory where there are GPUs? Then, and only then, no task asks
    for a larger part of a node's CPU or memory than of its GPUs."""
    shapes, table = world.shapes[world.rows.shape[world.rows.shape >= 0]], world.nodes.table
    if not len(shapes):
        return True
    shapes = np.unique(shapes[:, [S_GPU, S_CPU, S_MEM]], axis=0)
    nodes = np.unique(table[:, [ALL_GPU, ALL_CPU, ALL_MEM]], axis=0)
    for column in (1, 2):
        asked = shapes[:, None, column] * nodes[None, :, 0]
        if (asked > nodes[None, :, column] * shapes[:, None, 0]).any():
            return False
    return True


@kernel
def plan_job(
    nodes: Nodes, shapes: Any, rows: Rows, book: Book, kept: Kept, job: int, since: int, until: int,
    sign: int,
) -> None:  # fmt: skip
    """Books all tasks of a job in the plan (+1), or takes them out of it (-1)."""
    book_job(nodes, shapes, rows, book, kept.plan, job, since, until, sign)
    for task in range(tasks_of(shapes, rows.shape[job])):
        kept.gaps.version[book.node[rows.place[job] + task]] += 1


@kernel
def note_alone(kept: Kept, node: int, most: int) -> None:
    """Writes down since when how many GPUs are free beside those who run: ever more."""
    steps = kept.running.steps
    step = kept.running.first[node]
    for gpus in range(most + 1):
        while step != NO_STEP and steps[step, P_GPU] < gpus:
            step = steps[step, P_NEXT]
        kept.alone[gpus, node] = NOWHEN if step == NO_STEP else steps[step, P_TIME]


@leaf
def first_room(
    profile: Profile, node: int, since: int, length: int, gpu: int, cpu: int, mem: int, latest: int
) -> tuple[int, int]:
    """The first instant from `since` to `latest` at which a task fits on the node for its whole
    length, and the GPUs that are least free then; NOWHEN if there is none."""
    steps = profile.steps
    start = since
    at = profile.first[node]
    after = steps[at, P_NEXT]
    while after != NO_STEP and steps[after, P_TIME] <= start:
        at = after
        after = steps[at, P_NEXT]
    least = NOWHEN
    while True:
        if steps[at, P_GPU] < gpu or steps[at, P_CPU] < cpu or steps[at, P_MEM] < mem:
            if after == NO_STEP:
                return NOWHEN, 0
            start = steps[after, P_TIME]
            if start > latest:
                return NOWHEN, 0
            least = NOWHEN
        else:
            least = min(least, steps[at, P_GPU])
            if after == NO_STEP or steps[after, P_TIME] >= start + length:
                return start, least
        at = after
        after = steps[at, P_NEXT]
