"""What is out of order at one instant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from collector.store import Store

SILENT_AFTER = timedelta(minutes=15)
FAULT_FOR = timedelta(days=2)
LONG_WAIT = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """One thing out of order; ``kind``: node_down | gpu_fatal | silent | gang.

    ``gpus``: how many GPUs it takes out of use or keeps waiting.
    """

    kind: str
    cluster: str
    gpus: int
    since: datetime
    node: str | None = None
    state: str | None = None
    reason: str | None = None
    gpu_uuid: str | None = None
    code: int | None = None
    job_id: str | None = None
    user_name: str | None = None
    account: str | None = None


def broken_at(store: Store, at: datetime, cluster: str | None = None) -> list[Broken]:
    """Everything known to be out of order at ``at``: most GPUs first within each kind."""
    found = _nodes(store, at, cluster) + _faults(store, at, cluster)
    return found + _silent(store, at, cluster) + _waiting(store, at, cluster)


def _nodes(store: Store, at: datetime, cluster: str | None) -> list[Broken]:
    rows = store.rows(
        "SELECT s.cluster, s.node, s.state, s.reason, s.since, sum(n.gpus)::INTEGER AS gpus"
        " FROM node_state s JOIN node n ON n.cluster = s.cluster AND n.node = s.node"
        " AND n.valid_from <= $1 AND coalesce(n.valid_to > $1, true)"
        " WHERE s.since <= $1 AND coalesce(s.until > $1, true) AND ($2 IS NULL OR s.cluster = $2)"
        " GROUP BY ALL ORDER BY gpus DESC, s.since, s.node",
        [at, cluster],
    )
    return [Broken(kind="node_down", **row) for row in rows]


def _faults(store: Store, at: datetime, cluster: str | None) -> list[Broken]:
    rows = store.rows(
        "SELECT cluster, node, gpu_uuid, max_by(code, ts) AS code, max(ts) AS since, 1 AS gpus"
        " FROM event WHERE fatal AND kind IN ('xid', 'gpu_lost') AND ts <= $1 AND ts > $3"
        " AND ($2 IS NULL OR cluster = $2) GROUP BY ALL ORDER BY since DESC, node, gpu_uuid",
        [at, cluster, at - FAULT_FOR],
    )
    return [Broken(kind="gpu_fatal", **row) for row in rows]


def _silent(store: Store, at: datetime, cluster: str | None) -> list[Broken]:
    """Nodes that were measured within the day before and are not any more."""
    rows = store.rows(
        "WITH last AS (SELECT cluster, node, max(ts) AS since FROM sample"
        " WHERE ts > $3 AND ts <= $1 AND ($2 IS NULL OR cluster = $2) GROUP BY ALL)"
        " SELECT cluster, node, since, sum(n.gpus)::INTEGER AS gpus"
        " FROM last JOIN node n USING (cluster, node)"
        " WHERE since < $4 AND n.valid_from <= $1 AND coalesce(n.valid_to > $1, true)"
        " GROUP BY ALL ORDER BY gpus DESC, node",
        [at, cluster, at - timedelta(days=1), at - SILENT_AFTER],
    )
    return [Broken(kind="silent", **row) for row in rows]


def _waiting(store: Store, at: datetime, cluster: str | None) -> list[Broken]:
    """Jobs for several GPUs that have been eligible for long and do not run."""
    rows = store.rows(
        "SELECT cluster, job_id, user_name, account, gpus, eligible_at AS since FROM job_run"
        " WHERE gpus > 1 AND eligible_at <= $3 AND coalesce(start_at > $1, true)"
        " AND coalesce(end_at > $1, true) AND ($2 IS NULL OR cluster = $2)"
        " ORDER BY gpus DESC, eligible_at, job_id LIMIT 3",
        [at, cluster, at - LONG_WAIT],
    )
    return [Broken(kind="gang", **row) for row in rows]
