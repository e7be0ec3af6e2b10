"""The tables of the sweep: what its loops know of nodes, pools, jobs and runs, as rows of integers.

Each table is a two-dimensional int64 array, one row per quantity and one column per thing: few and
plain types keep compiling short. Times are microseconds. Python makes every table (`world.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = Any  # an int64 ndarray; numba needs no more

# Kinds of events: idx names a pool, node, reservation, job or parameter row; val is a difference
# or value.
(
    INSTALLED, CPU, MEM, CPU_TOTAL, MEM_TOTAL, FAILED, DRAINED, COVERED, COVERED_ALL, RESERVED,
    HELD, RESERVED_USED, BROKEN, PENDING, PRIORITY, LIMITED, PARAMETERS, RUNS, ROGUE,
) = range(19)  # fmt: skip

# What a GPU that is not held is; the first ones are the base of a pool, claims carry a job.
(
    C_FAILED, C_DRAINED, C_UNKNOWN, C_RESERVED, C_CPU, C_MEM, C_LOW, C_HIGH, C_ROGUE, C_FREE,
    C_GANG, C_CPU_REQUEST, C_MEM_REQUEST, C_SHAPE, C_TOPOLOGY, C_ORDER, C_LIMIT, C_FILLABLE,
) = range(18)  # fmt: skip
BASE = 9
CODES = 18

# Columns of a row of demand: per GPU by the profile and its bounds, then the operator's settings.
D_CPU, D_MEM, D_CPU_LOW, D_MEM_LOW, D_CPU_HIGH, D_MEM_HIGH, D_HEADROOM, D_PASS = range(8)

# A view is a state of the free GPUs: as they are, as the waiting ones are filled, as they are once
# runs have ended. Typed, since numba compiles a function anew for every plain number.
NOW: Any = np.int64(0)
HERE: Any = np.int64(1)
LATER: Any = np.int64(2)
VIEWS = 3

# Rows of `nodes`. A total of -1 = not known, never binds. CPU and MEM: one row per view.
(
    N_FAILED, N_DRAINED, N_COVERED, N_CPU_TOTAL, N_MEM_TOTAL, N_POOL_LO, N_POOL_HI, N_KEPT_LO,
    N_KEPT_HI, N_FREE, N_DIRTY, N_EPOCH, N_CPU,
) = range(13)  # fmt: skip
N_MEM = N_CPU + VIEWS
NODE_ROWS = N_MEM + VIEWS

# Rows of `pools`. LEFT and ORDER: one row per view. KEPT by reservations, EXTRA by headroom.
(
    P_NODE, P_INSTALLED, P_HELD, P_BROKEN, P_ROGUE, P_KEPT, P_EXTRA, P_OPEN, P_AVAIL, P_USABLE,
    P_STARTED, P_OLD_USABLE, P_CLAIMS, P_OLD_CLAIMS, P_CAUSES, P_BITS, P_PLACED, P_FILLED, P_LEFT,
) = range(19)  # fmt: skip
P_ORDER = P_LEFT + VIEWS
P_DOMAIN = P_ORDER + VIEWS
LEVELS = 3
POOL_ROWS = P_DOMAIN + LEVELS

# Rows of `kept`: GPUs (-1 = all), what its own accounts hold, whether in force, its node.
K_GPUS, K_USED, K_ACTIVE, K_NODE = range(4)

# Rows of `jobs`: `full` nodes with `per_node` GPUs each and, if any, one with `rest`; CPU and
# memory per full node. SHAPE = a number that jobs of the same wish share.
(
    J_GPUS, J_PER_NODE, J_FULL, J_REST, J_CPU, J_MEM, J_LEVEL, J_GROUP, J_ELIGIBLE, J_PRIORITY,
    J_LIMITED, J_LIMIT_US, J_FIT_SINCE, J_FIT_PASS, J_PLACEABLE, J_SHAPE,
) = range(16)  # fmt: skip
JOB_ROWS = 16

# Rows of `running`, in the order of estimated ends.
R_POOL, R_GPUS, R_NODE, R_CPU, R_MEM, R_ENDS, R_LIVE = range(7)
BLOCK = 64

# Places of `at`, the loop's own counters.
(
    A_NEXT, A_WAITING, A_COVER, A_PASS, A_ROW, A_SLOT, A_HEAD, A_FIRST, A_LINE, A_PREFIX, A_STAMP,
    A_UNCLAIMED, A_DIRTY, A_CLAIMED, A_BEFORE, A_USABLE, A_RESHAPED,
) = range(17)  # fmt: skip
AT = 17

# Rows of `lists`, as long as A_DIRTY and so on say: nodes that changed, pools with claims now and
# before, pools with usable GPUs in order of name.
T_DIRTY, T_CLAIMED, T_BEFORE, T_USABLE = range(4)
LISTS = 4

# Rows of `counts` (per domain) and of `totals` (per group of jobs).
FULL, REST, READY_FULL, READY_REST = range(4)
STANDING, UNCLAIMED = range(2)

# Places of a claim, of an open cause, and of a row of causes.
L_CODE, L_GPUS, L_JOB, L_RIPE = range(4)
O_KEY, O_TIME, O_AT, O_MOST = range(4)
OPEN = 32
CAUSE_COLUMNS = 7
"""pool, slot, code, job (-1 where a causer is blamed), an instant in it, GPU time, most GPUs."""

NEW, OLD = 0, 1
UNLIMITED = 2**62
NEVER = 2**62
ZERO: Any = np.int64(0)
NO_JOB: Any = np.int64(-1)


class World(NamedTuple):
    """All tables; `claims[new or old, pool, place]`, `base[pool, new or old, code]`."""

    nodes: Array
    pools: Array
    kept: Array
    jobs: Array
    allowed: Array
    demand: Array
    running: Array
    blocks: Array
    events: Array
    base: Array
    claims: Array
    posts: Array
    causes: Array
    queue: Array
    counts: Array
    totals: Array
    bucket: Array
    tried: Array
    lists: Array
    targets: Array
    bounds: Array
    at: Array
