"""N more nodes and N fewer, as plain alternatives to a change of policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scheduler_advisor.search.candidate import Candidate, Gain, harmed
from scheduler_advisor.search.catalogue import Change, Part, fewer_nodes
from scheduler_advisor.search.effects import Effects
from scheduler_advisor.search.waits import ClassWait

FURTHER = (0.20, 0.30, 0.40, 0.50)  # of the fleet: tried while the goals hold with a tenth less
NO_HELP = 0.1  # a fifth more nodes that cut the waits by less: the waits do not come from size


@dataclass(frozen=True, slots=True)
class NodesPoint:
    """Today's policy with more or fewer nodes.

    ``broken``: who would wait longer than the goals accept, or much longer than today; empty: the
    goals hold.
    """

    nodes: int
    gpus: int
    candidate: Candidate
    broken: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the goals hold with it."""
        return not self.broken


@dataclass(frozen=True, slots=True)
class Worth:
    """What a change is worth in hardware: nodes that would cut the same wait as much.

    ``nodes`` None: more than was tried. ``helps``: whether more nodes cut the wait at all; where
    they do not, the waits come from shape or order. ``measure``: urgent | big | mean.
    """

    nodes: float | None
    gpus: float | None
    helps: bool
    measure: str = "mean"


def broken(today: Effects, found: Effects) -> tuple[str, ...]:
    """Names of goals that do not hold: classes with a goal by it, the others as `harmed` says.

    A class that waits longer than its goal already is broken only where it gets longer still.
    """
    before = {each.name: each for each in today.class_waits}
    late = [each.name for each in found.class_waits if _late(before[each.name], each)]
    # The operator said what urgent work may wait: then that counts, and not what it waits today.
    told = any(each.goal_s is not None for each in found.class_waits)
    return (*late, *(name for name in harmed(today, found) if name != "urgent" or not told))


def _late(today: ClassWait, found: ClassWait) -> bool:
    if found.goal_s is None or found.p95_s is None or found.p95_s <= found.goal_s:
        return False
    return today.p95_s is None or found.p95_s > max(today.p95_s, found.goal_s)


def further(
    tried: Sequence[Candidate], nodes: int, run: Callable[[Change], Candidate | None]
) -> list[Candidate]:
    """Fewer and fewer nodes, as long as the goals hold."""
    fewer = [e for e in tried if e.parts == {Part.NODES} and e.changes[0].nodes < 0]
    found: list[Candidate] = []
    if not fewer or any(broken(each.today, each.found) for each in fewer):
        return found
    least = min(each.changes[0].nodes for each in fewer)
    for share in FURTHER:
        count = round(nodes * share)
        if -count >= least or count >= nodes:
            continue
        candidate = run(fewer_nodes(count))
        if candidate is None:
            break
        found.append(candidate)
        if broken(candidate.today, candidate.found):
            break
    return found


def points(tried: Sequence[Candidate], per_node: int) -> tuple[NodesPoint, ...]:
    """Every number of nodes that was tried, the fewest first."""
    found = [
        NodesPoint(each.changes[0].nodes, each.changes[0].nodes * per_node, each,
                   broken(each.today, each.found))
        for each in tried
        if each.parts == {Part.NODES}
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda point: point.nodes))


def to_give_back(found: Sequence[NodesPoint]) -> NodesPoint | None:
    """The most nodes that can go while the goals hold, and hold with fewer gone too."""
    best = None
    for point in sorted((p for p in found if p.nodes < 0), key=lambda point: -point.nodes):
        if not point.holds:
            break
        best = point
    return best


def worth(tried: Sequence[Candidate], best: Sequence[Candidate], per_node: int) -> Worth:
    """How many more nodes bring as much as the best change, in the wait that it is advised for."""
    if not best:
        return Worth(0.0, 0.0, helps=True)
    wait, name = _measure(best[0].gain)
    goal, today = wait(best[0].found), wait(best[0].today)
    more = sorted(
        (each.changes[0].nodes, wait(each.found))
        for each in tried
        if each.parts == {Part.NODES} and each.changes[0].nodes > 0
    )
    helps = any(after <= today * (1 - NO_HELP) for _, after in more)
    before = (0, today)
    for nodes, after in more:
        if after <= goal:
            share = (before[1] - goal) / max(before[1] - after, 1e-9)
            count = before[0] + (nodes - before[0]) * min(max(share, 0.0), 1.0)
            return Worth(count, count * per_node, helps, name)
        before = (nodes, after)
    return Worth(None, None, helps, name)


def _measure(gain: Gain) -> tuple[Callable[[Effects], float], str]:
    if gain is Gain.URGENT:
        return (lambda found: found.urgent_mean_s or 0.0), "urgent"
    if gain is Gain.BIG:
        return (lambda found: found.big_mean_s or 0.0), "big"
    if gain is Gain.TEAM:
        return (lambda found: float(found.starved_waited.sum())), "team"
    return (lambda found: found.mean_wait_s), "mean"
