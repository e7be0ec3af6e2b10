"""The engine's state as small named tuples of arrays.

Small, because the compiler carries every array of a tuple through every call: a function takes the
tuples that it needs and no others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from scheduler_advisor.engine.ranks import Ranks

WHOLE = 1000  # thousandths of one GPU
COUNTED = 1 << 40  # added to a counter that a job raises and is not bound by

# Columns of Nodes.table: free, total, what ends by the shadow (while STAMP is the shadow's).
GPU, CPU, MEM, TASKS = 0, 1, 2, 3
ALL_GPU, ALL_CPU, ALL_MEM = 4, 5, 6
GROUP, DOWN, MARK, STAMP = 7, 8, 9, 10
ENDS_GPU, ENDS_CPU, ENDS_MEM, ENDS_TASKS = 11, 12, 13, 14
VERSION = 15  # changes with what is free, where placement goes by score
NODE_COLUMNS = 16

# Numbers of policy.Placement inside kernels; from FGD on, nodes are chosen by score.
FIRST_FIT, BEST_FIT, WORST_FIT, CONSOLIDATE, RANDOM, FGD, DOT_PRODUCT = range(7)

# Columns of the table of shapes; a job's last, smaller task is its rest.
S_GPU, S_CPU, S_MEM, S_MILLI, S_FLAGS, S_CLASS, S_SIZE, S_TASKS = 0, 1, 2, 3, 4, 5, 6, 7
S_REST_GPU, S_REST_CPU, S_REST_MEM, S_PLAIN = 8, 9, 10, 11
DISTINCT, EXCLUSIVE = 1, 2  # bits of S_FLAGS

# Columns of Runs.more
(
    M_PRIORITY,
    M_PREEMPTIBLE,
    M_EVERY,
    M_WRITE,
    M_RESTORE,
    M_FIRST,
    M_STARTS,
    M_LEFT,
    M_LOST,
    M_OVERHEAD,
    M_PREEMPTED,
) = range(11)
MORE_COLUMNS = 11

# What can happen from outside; smaller comes first at one instant.
NODE_UP, NODE_FAILS, NODE_DRAINS, RESERVATION_EDGE = 0, 1, 2, 3

WAITS, RUNS, OVER = 0, 1, 2  # Runs.phase


class Nodes(NamedTuple):
    """The nodes, and the free thousandths of each GPU (one row where no job shares GPUs)."""

    table: Any
    share: Any


class Buckets(NamedTuple):
    """Nodes of one group with the same number of free GPUs, as bits in two levels.

    Bucket = group * (most + 1) + free GPUs. `filled` has a bit per bucket that is not empty.
    """

    words: Any  # [bucket, node >> 6]
    upper: Any  # [bucket, node >> 12]
    count: Any
    filled: Any  # [group, free >> 6]


class Classes(NamedTuple):
    """Which groups of nodes a class of jobs may use."""

    start: Any
    groups: Any
    member: Any  # [class, group] -> 0 or 1


class Rows(NamedTuple):
    """What is known of each job before the replay."""

    run: Any
    limit: Any
    shape: Any  # -1: can never run
    place: Any  # where its tasks' places begin in the book


class Runs(NamedTuple):
    """What became of each job; `more` has one row where no job can be stopped before its end."""

    start: Any
    end: Any
    phase: Any
    more: Any


class Book(NamedTuple):
    """The node of each task; a share's GPU or the bits of whole GPUs where GPUs are shared; the
    node on which it ran when the replay begins (-1: none; no entries where no job did)."""

    node: Any
    gpu: Any
    before: Any


class Held(NamedTuple):
    """Reservations: [r] -> since, until; who is covered; which one a job names (-1: none)."""

    window: Any
    covers: Any
    named: Any


class Limits(NamedTuple):
    """Counters of limits: [k] -> most milli-GPUs, most jobs, milli-GPUs, jobs now; the counters of
    each job, -1 beyond the last."""

    table: Any
    of_job: Any


class Family(NamedTuple):
    """Parents not yet ended; the children of each job."""

    waits_for: Any
    child_start: Any
    children: Any


class Shadow(NamedTuple):
    """EASY's promise: scalars (SH_* in shadow.py), and shares of GPUs that end by then."""

    number: Any
    share: Any


class World(NamedTuple):
    """All of it."""

    nodes: Nodes
    buckets: Buckets
    classes: Classes
    shapes: Any
    rows: Rows
    runs: Runs
    book: Book
    held: Held
    limits: Limits
    family: Family
    queue: Ranks
    shadow: Shadow
    failed: Any  # shape -> when it was found not to fit: at all, beyond the shadow, so for now
    eligible: Any
    arrival: Any  # jobs in order of arrival
    rank: Any
    at_rank: Any
    component: Any  # class -> the queue that it waits in
    first_rank: Any  # queue -> its first rank; one more than there are queues
    outside: Any  # [event] -> time, kind, node
    ends: Any  # heap
    believed: Any  # heap
    scratch: Any
    deferred: Any  # jobs stopped in a pass, queued at its end
    dirty: Any  # queue -> 1 where a pass is due


class Rules(NamedTuple):
    """The policy and what the workload makes necessary, as numbers and two tables."""

    backfill: int
    depth: int
    max_limit: int
    placement: int
    seed: int
    preempt: int
    headroom_milli: int
    smallest_milli: int  # no job asks for less
    components: int
    limits: int  # 1 where limits bind some job
    reservations: int
    shares: int  # 1 where some job takes a part of a GPU
    interruptible: int  # 1 where a job can be stopped before its end, or writes checkpoints
    gang_timeout: int
    most: int  # GPUs of the largest node
    plain_sizes: int  # 1 where a job always holds what it asks for, on nodes that are up
    dependencies: int
    ties: int  # how nodes of equal score are told apart
    typical: Any  # what placement by score is measured against (scoring.py)
    scored: Any  # what it knows and remembers of each node
