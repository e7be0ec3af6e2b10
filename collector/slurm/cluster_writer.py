"""Nodes, their states, the window of known facts and the log of an import into the store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import datetime
from typing import TypeVar

from collector.model import Fact, FactWindow, ImportLog, Node, NodeState
from collector.slurm import inventory, node_states
from collector.slurm.inventory import SOURCE, Statement
from collector.slurm.summary import ImportSummary
from collector.slurm.timeline import union
from collector.store import Work

_Row = TypeVar("_Row", Node, NodeState, FactWindow)
_KIND = "scheduler"


def write_nodes(work: Work, cluster: str, statement: Statement) -> tuple[int, list[str]]:
    """The number of inventory rows stated, and a remark on nodes that are gone."""
    before = _stored(work, cluster, Node)
    after = inventory.merged(before, statement)
    _replace(work, cluster, before, after)
    gone = {row.node for row in before if row.valid_to is None}
    gone -= {row.node for row in after if row.valid_to is None}
    remarks = [f"{len(gone)} nodes are no longer in the node list"] if gone else []
    return len(statement.nodes), remarks


def write_states(
    work: Work, cluster: str, states: Sequence[NodeState], since: datetime, until: datetime
) -> int:
    """The number of node states stated for the window."""
    before = _stored(work, cluster, NodeState)
    _replace(work, cluster, before, node_states.merged(before, states, since, until))
    return len(states)


def known_until(work: Work, cluster: str) -> datetime | None:
    """The latest instant that scheduler facts of the cluster reach; None = there are none."""
    found: datetime | None = work.value(
        "SELECT max(until) FROM fact_window WHERE cluster = ? AND kind = ? AND source = ?",
        [cluster, _KIND, SOURCE],
    )
    return found


def write_window(work: Work, cluster: str, since: datetime, until: datetime) -> None:
    """Scheduler facts are known over the window, in one piece with what it touches."""
    before = _stored(work, cluster, FactWindow)
    mine = [row for row in before if row.kind == _KIND and row.node is None]
    begin, end = union((since, until), [(row.since, row.until) for row in mine])
    after = [row for row in before if row not in mine or row.until < begin or row.since > end]
    row = FactWindow(cluster=cluster, kind=_KIND, since=begin, until=end, source=SOURCE)
    _replace(work, cluster, before, [*after, row])


def write_log(work: Work, summary: ImportSummary, digest: str, now: datetime) -> None:
    """One row per import; the same input for the same window again keeps the first row."""
    about = f"{summary.cluster}\n{digest}\n{summary.since}\n{summary.until}"
    import_id = hashlib.sha256(about.encode()).hexdigest()[:32]
    if work.value("SELECT count(*) FROM import_log WHERE import_id = ?", [import_id]):
        return
    reasons = [f"{count} {why}" for why, count in summary.dropped.items() if count]
    remarks = "; ".join([*reasons, *summary.remarks]) or None
    entry = ImportLog(
        import_id=import_id,
        cluster=summary.cluster,
        source=summary.source,
        ts=now,
        since=summary.since,
        until=summary.until,
        kept=summary.kept_total,
        dropped=summary.dropped_total,
        remarks=remarks,
    )
    work.append_facts([entry])


def _stored(work: Work, cluster: str, kind: type[_Row]) -> list[_Row]:
    names = [field.name for field in fields(kind)]
    rows = work.rows(
        f"SELECT {', '.join(names)} FROM {kind.table} WHERE cluster = ? AND source = ?",  # noqa: S608 - our own names
        [cluster, SOURCE],
    )
    build: Callable[..., _Row] = kind
    lists = [{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()} for row in rows]
    return [build(**row) for row in lists]


def _replace(work: Work, cluster: str, before: Sequence[Fact], after: Sequence[Fact]) -> None:
    """Write ``after`` over ``before``, and nothing where they are the same."""
    if set(before) == set(after) and len(before) == len(after):
        return
    table = (before or after)[0].table
    work.execute(f"DELETE FROM {table} WHERE cluster = ? AND source = ?", [cluster, SOURCE])  # noqa: S608 - our own names
    work.append_facts(after)
