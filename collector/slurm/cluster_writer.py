"""Nodes, their states, the window of known facts and the log of an import into the store."""

from __future__ import annotations

import hashlib
from datetime import datetime

from collector.model import FactWindow, ImportLog, Node, NodeState
from collector.slurm import inventory, node_states
from collector.slurm.inventory import SHOWN, SOURCE, Statement
from collector.slurm.node_states import StateStatement
from collector.slurm.stored import put_in_place, stored
from collector.slurm.summary import ImportSummary
from collector.slurm.timeline import union
from collector.store import Work

_KIND = "scheduler"


def write_nodes(work: Work, cluster: str, statement: Statement) -> tuple[int, list[str]]:
    """The number of inventory rows stated, and a remark on nodes that are gone."""
    before = stored(work, cluster, Node)
    after = inventory.merged(before, statement)
    put_in_place(work, cluster, before, after)
    gone = {row.node for row in before if row.valid_to is None}
    gone -= {row.node for row in after if row.valid_to is None}
    remarks = [f"{len(gone)} nodes are no longer in the node list"] if gone else []
    return len(statement.nodes), remarks


def write_states(work: Work, cluster: str, statement: StateStatement) -> int:
    """The number of node states stated."""
    before = stored(work, cluster, NodeState)
    put_in_place(work, cluster, before, node_states.booked(before, statement))
    before = stored(work, cluster, NodeState, SHOWN)
    put_in_place(work, cluster, before, node_states.shown(before, statement))
    return len(statement.booked) + len(statement.shown)


def known_until(work: Work, cluster: str) -> datetime | None:
    """The latest instant that scheduler facts of the cluster reach; None = there are none."""
    found: datetime | None = work.value(
        "SELECT max(until) FROM fact_window WHERE cluster = ? AND kind = ? AND source = ?",
        [cluster, _KIND, SOURCE],
    )
    return found


def write_window(work: Work, cluster: str, since: datetime, until: datetime) -> None:
    """Scheduler facts are known over the window, in one piece with what it touches."""
    before = stored(work, cluster, FactWindow)
    mine = [row for row in before if row.kind == _KIND and row.node is None]
    begin, end = union((since, until), [(row.since, row.until) for row in mine])
    after = [row for row in before if row not in mine or row.until < begin or row.since > end]
    row = FactWindow(cluster=cluster, kind=_KIND, since=begin, until=end, source=SOURCE)
    put_in_place(work, cluster, before, [*after, row])


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
