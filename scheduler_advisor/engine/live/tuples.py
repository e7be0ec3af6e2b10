"""The general driver's own state, beside the engine's `World`: small named tuples of arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

from scheduler_advisor.engine.parts.net import Net

NEVER = 1 << 62  # no such instant
NONE = -1

# Phases beyond WAITS, RUNS, OVER of world.py.
LEAVES = 3  # stopped or done, but its nodes are kept for the job that it makes room for

# Fate.kind: what is special about a job.
# EVICTED: told to leave; WRITING: its last checkpoint; CLAIMS: others leave for it; PINNED:
# suspended; GONE: has left, its room is kept; FALLEN: like that, but its memory is lost.
PLAIN, EVICTED, WRITING, CLAIMS, PINNED, GONE, FALLEN = range(7)

# Columns of Tree.row; amounts in thousandths of GPUs.
(
    Q_PARENT,
    Q_GUARANTEE,
    Q_MAXIMUM,
    Q_WEIGHT,
    Q_KEEP,  # unused guarantee that is not lent
    Q_HELD,
    Q_HELD_CPU,
    Q_HELD_MEM,
    Q_ASKED,  # by jobs that wait
    Q_FAIR,  # two-step fair share
    Q_USED,  # GPU-seconds, decayed
    Q_SINCE,  # what follows is counted up to here
    Q_GATHERED,  # milli-GPU-seconds of the period that is not over
    Q_NEXT,  # end of that period
    Q_OPEN,  # lines below with jobs left in this pass
    Q_HOUR,
    Q_EVICTED,  # milli-GPUs in that clock hour
    Q_SEEN,  # part of a pass in which the queue was blocked
    Q_DEPTH,
    Q_WAITING,  # jobs
) = range(20)
QUEUE_COLUMNS = 20

# Entries of `z`, the scalars of a replay.
(
    NOW,
    ENDS,  # sizes of heaps
    BELIEVED,
    TIMERS,
    WAITING,
    RUNNING,
    FREE,  # milli-GPUs
    HOLDERS,
    KEPT,  # free, but kept for a job whose victims have not all left
    EPOCH,
    LONG_EPOCH,
    STAMP,
    TICK,  # period whose priorities are in the keys
    WRITERS,
    ARRIVED,
    HAPPENED,
    BUDGET_OUT,  # a guard counted by the hour refused somebody in the last pass
    HOUR,
    EVICTED_IN_HOUR,
    PASS,
    STOPPED,
    RESOLVED,
    PLANS,
    HELD_SUM,
    KEPT_SUM,
    FREE_SUM,
    QUEUED_SUM,
    EVENTS_SUM,
    PASSES_SUM,
    SHADOWS_SUM,
    EXAMINED_SUM,
    BLOCKED,  # the last pass left a blocked job behind
    WRITTEN_AT,  # up to here progress of writers is counted
    FIRST,
    DOWN_SUM,
    HEAD,  # first job of this pass that was blocked, or NONE
    CAST,  # 1: the promise to the head is worked out
    EXAMINED,  # jobs examined behind the head
    HOPE,  # shapes before this one, of those that compete, cannot start any more
    SEEN_QUEUES,  # queues blocked in this pass
    WAITING_QUEUES,  # queues in which somebody waits
    CLOCK,  # moves when room may have come free that no victim held
    MOMENT,  # moves, within a pass, when what is free or promised changes
    DUE,  # the next instant, arrivals apart
) = range(44)
SCALARS = 44


class Lines(NamedTuple):
    """Waiting jobs in order. Line k is jobs[first[k]:last[k]], inside jobs[room[k]:room[k + 1]]."""

    jobs: Any
    room: Any
    first: Any
    last: Any
    of: Any  # job -> its line
    key: Any  # job -> smaller is earlier, after `tier`
    tier: Any
    cursor: Any  # line -> place in this pass


class Tree(NamedTuple):
    """Queues: node 0 is the root, parents come before children, siblings lie together."""

    row: Any  # [queue, Q_*]
    key: Any  # [queue] float: the smaller is served first
    child_start: Any
    children: Any
    leaf: Any  # job -> its queue
    rank: Any  # leaves in fair-tree order
    level: Any  # [queue] float: level fair share
    factor: Any  # [queue] fair-share factor in millionths


class Fate(NamedTuple):
    """Per job: evictions, claims and pins."""

    kind: Any
    claim: Any  # victim -> the job that it makes room for, or NONE
    left: Any  # claimant -> victims that have not left
    natural: Any  # when an evicted job would have ended
    standing: Any  # importance by priority or tier
    stoppable: Any
    by: Any  # how the job got its room: 0 free, 1 preemption by rank, 2 reclaim
    asked_at: Any  # when it asked for that room
    stake: Any  # seconds of work that are lost if what is not yet on storage is lost


class Crowd(NamedTuple):
    """Lists of jobs: running ones with each job's place, victims on trial, writers, claimants."""

    running: Any
    at: Any
    found: Any  # heap of candidates
    chosen: Any
    weigh: Any  # candidate -> what the order of victims goes by
    group: Any  # candidate -> 0 reclaim, 1 by rank
    writer: Any
    left_kib: Any  # writer -> what it has still to write
    claimants: Any
    victims: Any  # stopped jobs whose room is kept
    stopped: Any  # to be queued at the end of the pass
    front: Any  # queue -> one of its running jobs, or NONE
    behind: Any  # running job -> the next of its queue, or NONE
    before: Any


class Hope(NamedTuple):
    """What spares a pass the searches that cannot succeed: see hope.py."""

    rank: Any  # job -> its importance among all, 0 the lowest
    counted: Any  # job -> 1 while it runs and somebody could stop it
    freeable: Any  # [queue, rank] -> milli-GPUs of such jobs; row 0: all; last column: all ranks
    grown: Any  # rank -> clock when room last came free that nobody so important could have made
    vain: Any  # job -> clock when it looked for victims in vain, or NONE
    waits: Any  # shape -> jobs that wait
    shapes: Any  # shapes by set of competing jobs
    start: Any  # set -> where its shapes begin


class Guess(NamedTuple):
    """Run times of ended jobs by group; [job, k] -> its groups, finest first."""

    of: Any
    total: Any
    count: Any


class Factors(NamedTuple):
    """Multifactor priorities: what never changes of each job's."""

    fixed: Any


class Live(NamedTuple):
    """All of it."""

    lines: Lines
    tree: Tree
    fate: Fate
    crowd: Crowd
    guess: Guess
    factors: Factors
    ends: Any
    believed: Any
    timers: Any
    size_cpu: Any  # job -> CPU and memory that it asks for in all
    size_mem: Any
    total: Any  # cluster: milli-GPUs, CPU, memory
    hope: Hope
    levels: Any  # thresholds of attained service, milli-GPU-seconds
    planned: Any  # [node] -> GPUs, CPU, memory, tasks as a plan sees them
    net: Net  # the network, where it matters


class Terms(NamedTuple):
    """The policy's live parts as numbers."""

    order: int
    by_queue: int
    entitlement: int
    half_life: int
    decay: int  # per period, of 2**20
    period: int
    strict: int
    reclaim: int
    reclaim_fair: int
    by_rank: int  # 1: preemption by priority or tier is on
    preempts: int  # 1: somebody can be stopped at all
    victims: int
    own_queue: int
    mode: int
    min_run: int
    max_per_job: int
    max_per_hour: int
    max_team_milli: int
    grace: int
    timed: int
    kib_per_gpu: int
    kib_s: int
    two_step: int
    keeps: int  # 1: some guarantee is not lent
    weight_age: int
    weight_fair: int
    max_age: int
    learn: int
    interval: int
    whole_nodes: int
    first_plan: int  # row of the first planned reservation in Held
    most_plans: int
    limits_queues: int  # 1: some queue has a maximum
    has_levels: int
    remembers: int  # 1: a search for victims that failed need not be repeated until room grows
    bounded: int  # 1: what can be freed at most is known from counters
    coarse: int  # 1: jobs of one rank may differ in importance
    skips: int  # 1: a pass ends when no shape that waits can start
    by_network: int  # 1: gangs are placed by the network
    slows: int  # 1: run times stretch by where gangs lie
