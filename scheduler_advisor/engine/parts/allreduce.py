"""How long an all-reduce takes on a placement, and how much slower that makes a job.

The sum of a ring or a tree, whichever is quicker, over each step of the hierarchy (reduce-scatter
and all-gather, as in Patarasuk and Yuan 2009 and in NCCL's own tuning): over a step with k members,
bandwidth B, latency a and message m per member,

    ring = 2 (k - 1) a + 2 (k - 1) / k m / B        tree = 2 ceil(log2 k) a + 2 m / B

and beyond the step each member holds m / (members below) of the sum. One flat ring over all nodes
at the slowest step that is crossed is the alternative to the hierarchy; the quicker counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scheduler_advisor.engine.parts.links import Links

STEP_COUNT = 5
US = 1e-6


@dataclass(frozen=True, slots=True)
class Spread:
    """How a gang lies: `most[k]` and `least[k]` are the greatest and smallest number of members
    that one domain of step k has: GPUs of an island, islands of a node, nodes of a leaf, leaves of
    a spine, spines. `gpus` and `nodes` are totals."""

    most: tuple[int, ...]
    least: tuple[int, ...]
    gpus: int
    nodes: int


Path = tuple[int, int, int, int, int]  # spine, leaf, node, island, GPUs there


def spread_of(pieces: Iterable[tuple[int, int, int, int, int]]) -> Spread:
    """The spread of GPUs given as (spine, leaf, node, island, GPUs), codes as in a Tree."""
    gpus: dict[tuple[int, ...], int] = {}
    for spine, leaf, node, island, count in pieces:
        where = (spine, leaf, node, island)
        gpus[where] = gpus.get(where, 0) + count
    most, least = [max(gpus.values())], [min(gpus.values())]
    places = set(gpus)
    nodes = len({place[:3] for place in places})
    while places != {()}:
        above: dict[tuple[int, ...], int] = {}
        for place in places:
            above[place[:-1]] = above.get(place[:-1], 0) + 1
        most.append(max(above.values()))
        least.append(min(above.values()))
        places = set(above)
    return Spread(tuple(most), tuple(least), sum(gpus.values()), nodes)


def allreduce_s(spread: Spread, links: Links, message_bytes: float) -> float:
    """Seconds of one all-reduce of `message_bytes` per GPU; 0 on one GPU."""
    if spread.gpus <= 1:
        return 0.0
    total, share, slowest = 0.0, message_bytes, -1
    below_nodes, inside = message_bytes, 0.0
    for step in range(STEP_COUNT):
        members = spread.most[step]
        if members > 1:
            took = _step_s(members, share, links.gb_s[step], links.us[step])
            total += took
            if step > 1:
                slowest = (
                    step if slowest < 0 or links.gb_s[step] <= links.gb_s[slowest] else slowest
                )
            else:
                inside += took
        share /= spread.least[step]
        if step == 1:
            below_nodes = share
    if slowest < 0:
        return total
    flat = inside + _ring_s(spread.nodes, below_nodes, links.gb_s[slowest], links.us[slowest])
    return min(total, flat)


def _step_s(members: int, message: float, gb_s: float, us: float) -> float:
    tree = 2 * (members - 1).bit_length() * us * US + 2 * message / (gb_s * 1e9)
    return min(_ring_s(members, message, gb_s, us), tree)


def _ring_s(members: int, message: float, gb_s: float, us: float) -> float:
    hops = 2 * (members - 1)
    return hops * us * US + hops / members * message / (gb_s * 1e9)


PPM = 1_000_000


def slowdown_ppm(comm_milli: int, here_s: float, best_s: float) -> int:
    """1 + f x (t(placement) / t(best) - 1) in millionths, rounded half up; never below 1."""
    if comm_milli <= 0 or best_s <= 0 or here_s <= best_s:
        return PPM
    return PPM + int(comm_milli * 1000 * (here_s / best_s - 1.0) + 0.5)


def stretched(seconds: int, slowdown: int) -> int:
    """Wall seconds of so much service under a slowdown in millionths, rounded up."""
    return -(-seconds * slowdown // PPM)


def default_comm_milli(gpus: int, per_doubling: int, most: int = 500) -> int:
    """The share of time in communication where nothing is known of it: `per_doubling` thousandths
    for each doubling of the workers, at most half. A stated default, no measurement."""
    doublings = max(gpus, 1).bit_length() - 1
    return min(most, per_doubling * doublings)


def comm_of(
    measured_milli: Sequence[int], gpus: Sequence[int], per_doubling: int
) -> list[tuple[int, bool]]:
    """Per job the fraction in thousandths and whether it is a default; 0 measured = not known."""
    return [
        (known, False) if known > 0 else (default_comm_milli(size, per_doubling), True)
        for known, size in zip(measured_milli, gpus, strict=True)
    ]
