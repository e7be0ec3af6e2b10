"""What changed at an instant and what has to be looked at, as lists: most of a fleet stays as it
is."""

from __future__ import annotations

from analytics.ledger.kernel.compiled import leaf
from analytics.ledger.kernel.state import (
    A_CLAIMED,
    A_DIRTY,
    A_USABLE,
    HERE,
    N_DIRTY,
    P_CLAIMS,
    P_LEFT,
    P_USABLE,
    T_CLAIMED,
    T_DIRTY,
    T_USABLE,
    ZERO,
    World,
)


@leaf
def mark(world: World, n: int) -> None:
    """Node ``n`` must be judged anew."""
    if world.nodes[N_DIRTY, n] == 0:
        world.nodes[N_DIRTY, n] = 1
        world.lists[T_DIRTY, world.at[A_DIRTY]] = n
        world.at[A_DIRTY] += 1


@leaf
def new_claim(world: World, p: int) -> int:
    """The place of another claim on pool ``p``."""
    pools, at = world.pools, world.at
    place = pools[P_CLAIMS, p]
    if place == 0:
        world.lists[T_CLAIMED, at[A_CLAIMED]] = p
        at[A_CLAIMED] += 1
    pools[P_CLAIMS, p] = place + 1
    return int(place)


@leaf
def set_usable(world: World, p: int, gpus: int) -> None:
    """So many GPUs of pool ``p`` are usable; pools with any are listed in order of name."""
    pools, listed, n = world.pools, world.lists[T_USABLE], world.at[A_USABLE]
    had = pools[P_USABLE, p] > 0
    pools[P_USABLE, p] = gpus
    if had == (gpus > 0):
        return
    lo, hi = ZERO, n
    while lo < hi:
        mid = (lo + hi) // 2
        if listed[mid] < p:
            lo = mid + 1
        else:
            hi = mid
    if had:
        for k in range(lo, n - 1):
            listed[k] = listed[k + 1]
        pools[P_LEFT, p], pools[P_LEFT + HERE, p] = 0, 0
        world.at[A_USABLE] = n - 1
    else:
        for k in range(n, lo, -1):
            listed[k] = listed[k - 1]
        listed[lo] = p
        world.at[A_USABLE] = n + 1
