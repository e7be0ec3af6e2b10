"""Queues as the design page tells them: a tree by name, counted anew whenever it is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.live.settings import Entitlement, QueueRule
from scheduler_advisor.engine.policy import Policy

DECAY_ONE = 1 << 20
MILLION = 1_000_000


@dataclass(eq=False)
class Node:
    """One queue; amounts in thousandths of GPUs."""

    name: str | None
    parent: Node | None
    rule: QueueRule
    children: list[Node] = field(default_factory=list)
    guarantee: int = 0
    used: int = 0
    fair: int = 0
    history: list[tuple[int, int]] = field(default_factory=list)  # (time, held from then on)
    hour: int = -1
    evicted: int = 0

    def path(self) -> list[Node]:
        """From below the root down to this node."""
        return [] if self.parent is None else [*self.parent.path(), self]

    @property
    def maximum(self) -> int | None:
        return None if self.rule.maximum is None else self.rule.maximum * 1000


def leaf_names(jobs: Jobs, policy: Policy) -> list[str]:
    """Per job the name of its queue."""
    columns = [getattr(jobs, name) for name in policy.quota.by.split("/")]
    return ["/".join(column[at] for column in columns) for at in range(len(jobs))]


def tree_of(jobs: Jobs, policy: Policy) -> dict[str | None, Node]:
    """All queues by name; None is the root."""
    rules = {rule.name: rule for rule in policy.quota.queues}
    leaves = set(leaf_names(jobs, policy))
    names = set(leaves) | set(rules) | {rule.parent for rule in rules.values() if rule.parent}
    for leaf in leaves:
        parts = leaf.split("/")
        names |= {"/".join(parts[:at]) for at in range(1, len(parts))} - {""}
    nodes: dict[str | None, Node] = {None: Node(None, None, QueueRule(""))}

    def made(name: str) -> Node:
        if name not in nodes:
            rule = rules.get(name, QueueRule(name))
            above = rule.parent or (name.rpartition("/")[0] if "/" in name else "")
            parent = made(above) if above else nodes[None]
            nodes[name] = Node(name, parent, rule)
            parent.children.append(nodes[name])
        return nodes[name]

    for name in sorted(names):
        made(name)
    for name in leaves:
        if nodes[name].children:
            raise PolicyError(f"policy: queue {name} has jobs of its own and queues below it")
    for node in nodes.values():
        node.children.sort(key=lambda child: child.name or "")
    _guarantee(nodes[None])
    return nodes


def _guarantee(node: Node) -> int:
    below = sum(_guarantee(child) for child in node.children)
    node.guarantee = node.rule.guarantee * 1000 or below
    return node.guarantee


def used_at(node: Node, tick: int, period: int, decay: int) -> int:
    """GPU-seconds up to the end of period `tick`, each period's sum decayed since."""
    if not node.history:
        return 0
    used = 0
    first = node.history[0][0] // period
    for number in range(first, tick):
        start, end = number * period, (number + 1) * period
        used = (used * decay // DECAY_ONE) + _held_over(node, start, end) // 1000
    return used


def _held_over(node: Node, start: int, end: int) -> int:
    total = 0
    for (since, held), after in zip(
        node.history, [*(at for at, _ in node.history[1:]), end], strict=True
    ):
        total += held * max(0, min(after, end) - max(since, start))
    return total


def share_out(root: Node, capacity: int, demand: Callable[[Node], int]) -> None:
    """Two-step fair shares: guarantees first, as far as they are asked for, then what is left by
    weight among those who still ask; the same again below each queue."""
    root.fair = capacity
    for child in root.children:
        child.fair = min(child.guarantee, demand(child))
    left = capacity - sum(child.fair for child in root.children)
    asking = [child for child in root.children if demand(child) > child.fair and child.rule.weight]
    while left > 0 and asking:
        weights = sum(child.rule.weight for child in asking)
        share = {child.name: left * child.rule.weight // weights for child in asking}
        full = [child for child in asking if demand(child) - child.fair <= share[child.name]]
        for child in full or asking:
            more = demand(child) - child.fair if full else share[child.name]
            child.fair += more
            left -= more if full else 0
        if not full:
            break
        asking = [child for child in asking if child not in full]
    for child in root.children:
        if child.children:
            share_out(child, child.fair, demand)


def fair_factors(nodes: dict[str | None, Node], used: Callable[[Node], int]) -> dict[str, int]:
    """Fair tree: leaves in order of level fair share, level by level; equal ones share a rank."""

    def level(node: Node) -> float:
        assert node.parent is not None
        weights = sum(one.rule.weight for one in node.parent.children)
        usage = sum(used(one) for one in node.parent.children)
        if node.rule.weight == 0:
            return 0.0
        if used(node) == 0:
            return 1e300
        return float(node.rule.weight) * float(usage) / (float(weights) * float(used(node)))

    leaves = [node for node in nodes.values() if node.parent is not None and not node.children]
    vector = {node.name: [-level(one) for one in node.path()] for node in leaves}
    return {
        str(node.name): MILLION
        * (len(leaves) - sum(vector[one.name] < vector[node.name] for one in leaves))
        // len(leaves)
        for node in leaves
    }


def entitlement(node: Node, kind: Entitlement) -> int:
    """What usage is divided by; never 0."""
    if kind is Entitlement.WEIGHT:
        return max(1, node.rule.weight * 1000)
    return max(1, node.guarantee if kind is Entitlement.GUARANTEE else node.fair)
