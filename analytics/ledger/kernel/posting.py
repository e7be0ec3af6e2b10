"""What pools were, added up as the sweep goes: GPU time per slice and class, and whom to blame."""

from __future__ import annotations

from analytics.ledger.kernel.compiled import leaf
from analytics.ledger.kernel.state import (
    A_SLOT,
    BASE,
    C_CPU,
    C_FILLABLE,
    C_FREE,
    C_GANG,
    C_LIMIT,
    C_MEM,
    C_ORDER,
    L_CODE,
    L_GPUS,
    L_JOB,
    L_RIPE,
    N_EPOCH,
    NO_JOB,
    O_AT,
    O_KEY,
    O_MOST,
    O_TIME,
    OLD,
    OPEN,
    P_CAUSES,
    P_NODE,
    P_OLD_CLAIMS,
    P_OLD_USABLE,
    P_STARTED,
    Array,
    World,
)

_CODES = 32


@leaf
def _waits(code: int) -> bool:
    return bool(code == C_GANG or code == C_ORDER or code == C_LIMIT)


@leaf
def spill(world: World, p: int, out: Array, n: int) -> int:
    """Hand out the open causes of a pool; the new number of rows."""
    causes, pools = world.causes, world.pools
    for place in range(pools[P_CAUSES, p]):
        key = causes[p, place, O_KEY]
        code = key % _CODES
        out[n, 0], out[n, 1], out[n, 2] = p, world.at[A_SLOT], code
        out[n, 3] = key // _CODES if _waits(code) else NO_JOB
        out[n, 4], out[n, 5] = causes[p, place, O_AT], causes[p, place, O_TIME]
        out[n, 6] = causes[p, place, O_MOST]
        n += 1
    pools[P_CAUSES, p] = 0
    return n


@leaf
def _blame(
    world: World, p: int, code: int, job: int, gpus: int, span: tuple[int, int], out: Array, n: int
) -> int:
    """Add GPU time to an open cause: of a job that waits, or of the runs on the node now."""
    causes, pools = world.causes, world.pools
    who = job if _waits(code) else world.nodes[N_EPOCH, pools[P_NODE, p]]
    key = who * _CODES + code
    place = 0
    while place < pools[P_CAUSES, p] and causes[p, place, O_KEY] != key:
        place += 1
    if place == OPEN:
        n = spill(world, p, out, n)
        place = 0
    if place == pools[P_CAUSES, p]:
        causes[p, place, O_KEY], causes[p, place, O_AT] = key, span[0]
        causes[p, place, O_TIME], causes[p, place, O_MOST] = 0, 0
        pools[P_CAUSES, p] = place + 1
    causes[p, place, O_TIME] += gpus * (span[1] - span[0])
    causes[p, place, O_MOST] = max(causes[p, place, O_MOST], gpus)
    return n


@leaf
def close(world: World, p: int, t: int, out: Array, n: int) -> int:
    """Post what pool ``p`` was until ``t``, from when it last changed; the new number of causes."""
    pools, base, posts, targets = world.pools, world.base, world.posts, world.targets
    a = max(pools[P_STARTED, p], world.bounds[0])
    pools[P_STARTED, p] = t
    if a >= t:
        return n
    slot = world.at[A_SLOT]
    for code in range(BASE):
        gpus = base[p, OLD, code]
        if gpus > 0:
            posts[p, slot, targets[code]] += gpus * (t - a)
            if code == C_CPU or code == C_MEM:
                n = _blame(world, p, code, NO_JOB, gpus, (a, t), out, n)
    rest = pools[P_OLD_USABLE, p]
    for place in range(pools[P_OLD_CLAIMS, p]):
        code = world.claims[OLD, p, place, L_CODE]
        gpus = world.claims[OLD, p, place, L_GPUS]
        begin = a
        if code == C_ORDER:
            # A job that fits only just now is the scheduler's next step, not its failing.
            begin = min(max(world.claims[OLD, p, place, L_RIPE], a), t)
            posts[p, slot, targets[C_FREE]] += gpus * (begin - a)
        posts[p, slot, targets[code]] += gpus * (t - begin)
        if code != C_FILLABLE:
            rest -= gpus
            if begin < t:
                job = world.claims[OLD, p, place, L_JOB]
                n = _blame(world, p, code, job, gpus, (begin, t), out, n)
    posts[p, slot, targets[C_FREE]] += rest * (t - a)
    return n
