"""Snapshots of what a node has, merged into rows with validity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from collector.agent.batch import Batch
from collector.agent.tables import SNAPSHOTS
from collector.store import Work

SOURCE = "agent"


@dataclass(frozen=True, slots=True)
class _Kind:
    """``key``: what makes it the same thing; the other columns are what may change about it."""

    table: str
    key: tuple[str, ...]
    closes_missing: bool


_KINDS = (
    # A GPU that is missing from a snapshot is lost, not gone: its row stays open.
    _Kind("device_seen", ("gpu_uuid",), closes_missing=False),
    _Kind("mig_instance", ("mig_uuid",), closes_missing=True),
    _Kind("nvlink", ("gpu_uuid", "link"), closes_missing=True),
    _Kind("gpu_fabric", ("gpu_uuid",), closes_missing=True),
    _Kind("gpu_near", ("gpu_uuid", "peer_uuid"), closes_missing=True),
)


def merge(work: Work, batch: Batch) -> int:
    """Merge every snapshot of the batch and return the rows that are new."""
    rows = _devices(work, batch) + _nodes(work, batch)
    return rows + sum(_validity(work, batch, kind) for kind in _KINDS)


def records(batch: Batch, table: str) -> list[dict[str, Any]] | None:
    """The snapshot as dicts with aware times; None when the batch has none of this table."""
    columns = batch.tables.get(table)
    if columns is None:
        return None
    height = max((len(values) for values in columns.values()), default=0)
    names = SNAPSHOTS[table]
    empty = [None] * height
    found = [
        dict(zip(names, row, strict=True))
        for row in zip(*(columns.get(name, empty) for name in names), strict=True)
    ]
    for record in found:
        record["ts"] = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=record["ts"])
    return found


def _devices(work: Work, batch: Batch) -> int:
    """A physical GPU is written once, for ever."""
    found = records(batch, "device") or []
    if not found:
        return 0
    marks = ", ".join("?" * len(found))
    known = work.rows(
        f"SELECT gpu_uuid FROM device WHERE cluster = ? AND gpu_uuid IN ({marks})",
        [batch.cluster, *(record["gpu_uuid"] for record in found)],
    )
    have = {row["gpu_uuid"] for row in known}
    fresh = [record for record in found if record["gpu_uuid"] not in have]
    for record in fresh:
        record["first_seen_at"] = record.pop("ts")
    return _append(work, batch, "device", fresh, with_node=False)


def _nodes(work: Work, batch: Batch) -> int:
    """The node's inventory, unless a scheduler says it: capacity must not be counted twice."""
    found = records(batch, "node")
    if not found:
        return 0
    key = [batch.cluster, batch.node]
    elsewhere = work.value(
        "SELECT count(*) FROM node WHERE cluster = ? AND node = ? AND source <> ?", [*key, SOURCE]
    )
    if elsewhere:
        work.execute(
            "DELETE FROM node WHERE cluster = ? AND node = ? AND source = ?", [*key, SOURCE]
        )
        return 0
    return _validity(work, batch, _Kind("node", ("gpu_model",), closes_missing=False))


def _validity(work: Work, batch: Batch, kind: _Kind) -> int:
    found = records(batch, kind.table)
    if found is None:
        return 0
    names = [name for name in SNAPSHOTS[kind.table] if name != "ts"]
    open_rows = work.rows(
        f"SELECT node, {', '.join(names)} FROM {kind.table} WHERE cluster = ? AND valid_to IS NULL "
        f"AND (node = ? OR {_among(kind, found)}) AND source = ?",
        [batch.cluster, batch.node, *_values(kind, found), SOURCE],
    )
    back = _back(batch) if kind.table == "device_seen" else set()
    known = {tuple(row[name] for name in kind.key): row for row in open_rows}
    fresh = []
    for record in found:
        before = known.pop(tuple(record[name] for name in kind.key), None)
        same = before is not None and before["node"] == batch.node
        same = same and record.get("gpu_uuid") not in back
        if same and before is not None and all(before[name] == record[name] for name in names):
            continue
        if before is not None:
            _close(work, batch, kind, before, record["ts"])
        record["valid_from"] = record.pop("ts")
        fresh.append(record)
    if kind.closes_missing:
        for row in known.values():
            if row["node"] == batch.node:
                _close(work, batch, kind, row, _when(batch))
    return _append(work, batch, kind.table, fresh, with_node=True)


def _back(batch: Batch) -> set[str]:
    """GPUs that are in order again: a new stay at the node begins, which ends their outage."""
    events = batch.tables.get("event", {})
    pairs = zip(events.get("kind", []), events.get("gpu_uuid", []), strict=False)
    return {gpu_uuid for kind, gpu_uuid in pairs if kind == "gpu_back"}


def _among(kind: _Kind, found: Sequence[dict[str, Any]]) -> str:
    """GPUs and instances move between nodes; a link or a pool does not."""
    if len(kind.key) != 1 or kind.table == "node" or not found:
        return "false"
    return f"{kind.key[0]} IN ({', '.join('?' * len(found))})"


def _values(kind: _Kind, found: Sequence[dict[str, Any]]) -> list[Any]:
    return [] if _among(kind, found) == "false" else [record[kind.key[0]] for record in found]


def _close(work: Work, batch: Batch, kind: _Kind, row: dict[str, Any], at: datetime) -> None:
    conditions = " AND ".join(f"{name} = ?" for name in kind.key)
    work.execute(
        f"UPDATE {kind.table} SET valid_to = ? WHERE cluster = ? AND node = ? AND valid_to IS NULL "
        f"AND source = ? AND {conditions}",
        [at, batch.cluster, row["node"], SOURCE, *(row[name] for name in kind.key)],
    )


def _when(batch: Batch) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=batch.ts_us)


def _append(
    work: Work, batch: Batch, table: str, records: list[dict[str, Any]], *, with_node: bool
) -> int:
    if not records:
        return 0
    columns: dict[str, list[Any]] = {name: [r[name] for r in records] for name in records[0]}
    columns["cluster"] = [batch.cluster] * len(records)
    columns["source"] = [SOURCE] * len(records)
    if with_node:
        columns["node"] = [batch.node] * len(records)
    if table == "node":
        columns["owned"] = [True] * len(records)
    return work.append(table, columns)
