"""The tree of queues as arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.engine.live.queues import NO_MAXIMUM
from scheduler_advisor.engine.live.settings import QueueRule, QuotaPart
from scheduler_advisor.engine.live.tuples import (
    Q_DEPTH,
    Q_GUARANTEE,
    Q_KEEP,
    Q_MAXIMUM,
    Q_NEXT,
    Q_PARENT,
    Q_SINCE,
    Q_WEIGHT,
    QUEUE_COLUMNS,
    Tree,
)

Ints = NDArray[np.int64]
WHOLE = 1000


@dataclass(frozen=True, slots=True)
class Queues:
    """The tree, and the name of each of its nodes; the root has none."""

    tree: Tree
    names: tuple[str, ...]


def make_tree(jobs: Jobs, quota: QuotaPart, period: int, began: int) -> Queues:
    """Queues of the jobs and of the policy, parents before children, siblings by name."""
    leaves, leaf_of = leaves_of(jobs, quota)
    parent = _parents(leaves, quota)
    depth: dict[str, int] = {}
    for name in parent:
        level, above = 1, parent[name]
        while above:
            level, above = level + 1, parent[above]
        depth[name] = level
    order = sorted(parent, key=lambda name: (depth[name], name))
    index = {name: at + 1 for at, name in enumerate(order)} | {"": 0}
    used = {index[parent[name]] for name in order if parent[name]}
    for name in leaves:
        if name and index[name] in used:
            raise PolicyError(f"policy: queue {name} has jobs of its own and queues below it")
    # A job without a name for its queue waits in a leaf of its own below the root.
    unnamed = len(order) + 1
    size = len(order) + 1 + ("" in leaves)
    row = np.zeros((size, QUEUE_COLUMNS), np.int64)
    row[0, Q_PARENT] = -1
    rules = {rule.name: rule for rule in quota.queues}
    below: list[list[int]] = [[] for _ in range(size)]
    if unnamed < size:
        _fill(row, unnamed, 0, 1, QueueRule(""))
        below[0].append(unnamed)
    for name in order:
        _fill(row, index[name], index[parent[name]], depth[name], rules.get(name, QueueRule(name)))
        below[index[parent[name]]].append(index[name])
    for queue in range(size - 1, 0, -1):
        if below[queue] and row[queue, Q_GUARANTEE] == 0:
            row[queue, Q_GUARANTEE] = sum(row[child, Q_GUARANTEE] for child in below[queue])
        if below[queue]:
            row[queue, Q_KEEP] = 0
    row[:, Q_SINCE] = began
    row[:, Q_NEXT] = (began // period + 1) * period if period else 0
    code = np.array([index[name] if name else unnamed for name in leaves], np.int64)
    starts = np.concatenate(([0], np.cumsum([len(one) for one in below]))).astype(np.int64)
    tree = Tree(
        row=row,
        key=np.zeros(size, np.float64),
        child_start=starts,
        children=np.array([child for one in below for child in one], np.int64),
        leaf=code[leaf_of],
        rank=np.array([queue for queue in range(1, size) if not below[queue]], np.int64),
        level=np.zeros(size, np.float64),
        factor=np.zeros(size, np.int64),
    )
    return Queues(tree, ("", *order, *([""] if unnamed < size else [])))


def _fill(row: Ints, queue: int, parent: int, depth: int, rule: QueueRule) -> None:
    row[queue, Q_PARENT] = parent
    row[queue, Q_DEPTH] = depth
    row[queue, Q_GUARANTEE] = rule.guarantee * WHOLE
    row[queue, Q_MAXIMUM] = NO_MAXIMUM if rule.maximum is None else rule.maximum * WHOLE
    row[queue, Q_WEIGHT] = rule.weight
    if rule.lend is not None:
        row[queue, Q_KEEP] = max(0, (rule.guarantee - rule.lend) * WHOLE)


def leaves_of(jobs: Jobs, quota: QuotaPart) -> tuple[list[str], Ints]:
    """Distinct queue names of the jobs, and each job's place among them."""
    columns = [getattr(jobs, name) for name in quota.by.split("/")]
    codes = np.stack([column.codes for column in columns], axis=1)
    distinct, of = np.unique(codes, axis=0, return_inverse=True)
    names = [
        "/".join(column.names[code] for column, code in zip(columns, row, strict=True))
        for row in distinct.tolist()
    ]
    return names, of.reshape(-1).astype(np.int64)


def paths_up(names: Iterable[str], quota: QuotaPart) -> list[list[str]]:
    """Each queue and those above it, itself first: its rule's parent, else its name's up to the
    last slash."""
    parents = {rule.name: rule.parent for rule in quota.queues}
    found = []
    for name in names:
        path: list[str] = []
        while name:
            path.append(name)
            name = parents.get(name) or name.rpartition("/")[0]
        found.append(path)
    return found


def _parents(leaves: list[str], quota: QuotaPart) -> dict[str, str]:
    """Every queue below the root -> the one above it ("": the root)."""
    parent: dict[str, str] = {}
    for path in paths_up((*leaves, *(rule.name for rule in quota.queues)), quota):
        parent |= pairwise([*path, ""])
    return parent
