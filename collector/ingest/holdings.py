"""Holders that only the node knows (pods, containers, bare users) as jobs, runs and allocations.

Slurm's holders are left out: the scheduler's own facts say them better.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from collector.agent.batch import Batch
from collector.ingest.inventory import records
from collector.ingest.runs import SLURM
from collector.store import Work

SOURCE = "agent"
# Agents tell of holders on change, and once a minute: silence for longer is a gap, not holding on.
_TOLD_EVERY = timedelta(seconds=60)


def merge(work: Work, batch: Batch) -> int:
    """Open a run for each new holder, extend those that hold on, close those that let go."""
    found = records(batch, "holding")
    if found is None:
        return 0
    mine = [record for record in found if not str(record["key"]).startswith(SLURM)]
    now = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=batch.ts_us)
    known = _open_runs(work, batch)
    rows = 0
    for key in {str(record["key"]) for record in mine}:
        places = [record for record in mine if record["key"] == key]
        run_id = known.pop(key, None)
        if run_id is None:
            run_id = f"{key}@{batch.node}.{round(places[0]['ts'].timestamp())}"
            rows += _open(work, batch, run_id, places)
        rows += _allocate(work, batch, run_id, places, now)
        _extend(work, batch, run_id, now)
    if known:
        before = now - _step(batch)
        for run_id in known.values():
            _close(work, batch, run_id, before)
    return rows


def _step(batch: Batch) -> timedelta:
    """Between two ticks of the agent: at the tick before, an ended holder was still there."""
    steps = batch.tables.get("sample", {}).get("step_s") or [0.0]
    return timedelta(seconds=max(steps))


def _open_runs(work: Work, batch: Batch) -> dict[str, str]:
    """Holder -> open run on this node."""
    rows = work.rows(
        "SELECT DISTINCT r.job_id, r.run_id FROM job_run r JOIN allocation a "
        "ON a.cluster = r.cluster AND a.run_id = r.run_id "
        "WHERE r.cluster = ? AND a.node = ? AND r.source = ? AND r.end_at IS NULL",
        [batch.cluster, batch.node, SOURCE],
    )
    return {row["job_id"]: row["run_id"] for row in rows}


def _open(work: Work, batch: Batch, run_id: str, places: list[dict[str, Any]]) -> int:
    first = places[0]
    shared = {
        "cluster": [batch.cluster], "job_id": [first["key"]], "account": [first["account"]],
        "user_name": [first["user_name"]], "submit_at": [first["ts"]], "source": [SOURCE],
    }  # fmt: skip
    known = work.value(
        "SELECT 1 FROM job WHERE cluster = ? AND job_id = ? LIMIT 1", [batch.cluster, first["key"]]
    )
    if known is None:
        work.append("job", {**shared, "name": [first["name"]], "req_gpus": [len(places)]})
    run = {
        "run_id": [run_id], "attempt": [1], "start_at": [first["ts"]], "state": ["RUNNING"],
        "gpus": [len(places)], "nodes": [1], "last_known_at": [first["ts"]],
    }  # fmt: skip
    return 1 + work.append("job_run", {**shared, **run})


def _allocate(
    work: Work, batch: Batch, run_id: str, places: list[dict[str, Any]], now: datetime
) -> int:
    """What the run holds now; what it held before and does not any more ends."""
    open_rows = work.rows(
        "SELECT gpu_uuid, mig_uuid, share_num, share_den FROM allocation "
        "WHERE cluster = ? AND run_id = ? AND node = ? AND end_at IS NULL",
        [batch.cluster, run_id, batch.node],
    )
    names = ("gpu_uuid", "mig_uuid", "share_num", "share_den")
    have = {tuple(row[name] for name in names) for row in open_rows}
    want = {tuple(record[name] for name in names): record for record in places}
    for gpu_uuid, mig_uuid, share_num, share_den in have - want.keys():
        work.execute(
            "UPDATE allocation SET end_at = ? WHERE cluster = ? AND run_id = ? AND node = ? "
            "AND end_at IS NULL AND gpu_uuid = ? AND mig_uuid IS NOT DISTINCT FROM ? "
            "AND share_num = ? AND share_den = ?",
            [now, batch.cluster, run_id, batch.node, gpu_uuid, mig_uuid, share_num, share_den],
        )
    fresh = [record for place, record in want.items() if place not in have]
    if not fresh:
        return 0
    columns: dict[str, list[Any]] = {name: [r[name] for r in fresh] for name in names}
    columns |= {
        "cluster": [batch.cluster] * len(fresh), "run_id": [run_id] * len(fresh),
        "node": [batch.node] * len(fresh), "gpus": [1] * len(fresh),
        "start_at": [r["ts"] for r in fresh], "source": [SOURCE] * len(fresh),
    }  # fmt: skip
    return work.append("allocation", columns)


def _extend(work: Work, batch: Batch, run_id: str, now: datetime) -> None:
    work.execute(
        "UPDATE job_run SET last_known_at = ? WHERE cluster = ? AND run_id = ? "
        "AND (last_known_at IS NULL OR last_known_at < ?)",
        [now, batch.cluster, run_id, now],
    )


def _close(work: Work, batch: Batch, run_id: str, before: datetime) -> None:
    """It is not in the snapshot any more: it held until the tick ``before``, unless the agent was
    silent meanwhile; then until it was last told of."""
    key = [batch.cluster, run_id]
    told = work.value("SELECT last_known_at FROM job_run WHERE cluster = ? AND run_id = ?", key)
    until = max(told, before) if before - told <= _TOLD_EVERY + _step(batch) else told
    for table, more in (("allocation", ""), ("job_run", ", state = 'COMPLETED'")):
        work.execute(
            f"UPDATE {table} SET end_at = ?{more} "
            "WHERE cluster = ? AND run_id = ? AND end_at IS NULL",
            [until, *key],
        )
