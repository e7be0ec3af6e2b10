"""The cluster's nodes over time: each import states them for its window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from collector.model import Node
from collector.slurm.node import SlurmNode
from collector.slurm.partition import SlurmPartition
from collector.slurm.split import Inventory
from collector.slurm.timeline import cut
from collector.slurm.topology import Place

SOURCE = "slurm"
SHOWN = "slurm-shown"
"""Source of node states that the node list showed itself; those of accounting have `SOURCE`."""

_ANY = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Statement:
    """``nodes`` were so over ``[since, until)``, and on until somebody states otherwise."""

    nodes: tuple[Node, ...]
    since: datetime
    until: datetime


def gpus_of(nodes: Iterable[SlurmNode]) -> Inventory:
    """GPUs by type of every node, with empty types for nodes without."""
    return {node.name: node.gpus for node in nodes}


def stated(
    cluster: str,
    nodes: Iterable[SlurmNode],
    partitions: Iterable[SlurmPartition],
    places: Mapping[str, Place],
    since: datetime,
) -> tuple[Node, ...]:
    """One inventory row per node and GPU type; ``gpu_model`` is Slurm's raw type, lower case.

    CPUs and memory are the node's, on each of its rows.
    """
    member: dict[str, list[str]] = {}
    for partition in partitions:
        for name in partition.nodes:
            member.setdefault(name, []).append(partition.name)
    rows = []
    for node in nodes:
        place = places.get(node.name, Place())
        for kind, count in node.gpus.items() or [(None, 0)]:
            rows.append(
                Node(
                    cluster=cluster,
                    node=node.name,
                    gpu_model=kind,
                    gpus=count,
                    cpus=node.cpus,
                    mem_mib=node.mem_mib,
                    partitions=tuple(node.partitions or member.get(node.name, ())) or None,
                    features=node.features or None,
                    rack=place.rack,
                    leaf=place.leaf,
                    spine=place.spine,
                    valid_from=since,
                    source=SOURCE,
                )
            )
    return tuple(rows)


def merged(existing: Sequence[Node], statement: Statement) -> list[Node]:
    """The inventory after the statement: unchanged nodes keep their rows as they are."""
    before = _by_name(existing)
    after = _by_name(statement.nodes)
    rows: list[Node] = []
    for name in sorted(before.keys() | after.keys()):
        rows += _merged(before.get(name, []), after.get(name, []), statement)
    return rows


def _merged(before: list[Node], after: list[Node], statement: Statement) -> list[Node]:
    since, until = statement.since, statement.until
    if any(group == _contents(after) for group in _groups_over(before, since, until)):
        return before
    left = [
        replace(row, valid_from=begin, valid_to=end)
        for row in before
        for begin, end in cut((row.valid_from, row.valid_to), since, until)
    ]
    following = [row.valid_from for row in left if row.valid_from >= until]
    end = min(following) if following else None
    fresh = [replace(row, valid_from=since, valid_to=end) for row in after]
    return _coalesced([*left, *fresh])


def _groups_over(rows: list[Node], since: datetime, until: datetime) -> list[frozenset[Node]]:
    """The contents of the rows that hold over the whole window."""
    over = [
        row
        for row in rows
        if row.valid_from <= since and (row.valid_to is None or row.valid_to >= until)
    ]
    return [_contents(over)] if over else []


def _contents(rows: Iterable[Node]) -> frozenset[Node]:
    """Rows without their validity, to compare what they say."""
    return frozenset(replace(row, valid_from=_ANY, valid_to=None) for row in rows)


def _coalesced(rows: list[Node]) -> list[Node]:
    """Rows that say the same and touch become one."""
    joined: list[Node] = []
    for row in sorted(rows, key=lambda r: (str(r.gpu_model), r.valid_from)):
        last = joined[-1] if joined else None
        if last and last.valid_to == row.valid_from and _contents([last]) == _contents([row]):
            joined[-1] = replace(last, valid_to=row.valid_to)
        else:
            joined.append(row)
    return joined


def _by_name(rows: Iterable[Node]) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for row in rows:
        found.setdefault(row.node, []).append(row)
    return found
