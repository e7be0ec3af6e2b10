"""Nodes that are kept for others during a window."""

from __future__ import annotations

from scheduler_advisor.engine.jit import kernel
from scheduler_advisor.engine.world import Held


@kernel
def reserved_away(held: Held, node: int, own: int, at: int, until: int) -> bool:
    """Does a reservation of others cover the node at some moment of [at, until)?"""
    for one in range(len(held.window)):
        if (
            one != own
            and held.covers[one, node] == 1
            and at < held.window[one, 1]
            and until > held.window[one, 0]
        ):
            return True
    return False
