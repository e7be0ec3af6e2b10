"""Holders that only the node knows (pods, containers, bare users) as jobs, runs and allocations.

Slurm's holders are left out: the scheduler's own facts say them better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from collector.agent.batch import Batch
from collector.ingest.inventory import records
from collector.ingest.runs import SLURM
from collector.store import Work
from collector.telemetry.rows import micros

SOURCE = "agent"
# Agents tell of holders on change, and once a minute: silence for longer is a gap, not holding on.
_TOLD_EVERY = timedelta(seconds=60)
_PLACE = ("gpu_uuid", "mig_uuid", "share_num", "share_den")
_Run = tuple[str, str]  # cluster, run id
_Place = tuple[Any, ...]


@dataclass(slots=True)
class _Open:
    """A run that is not over: when it was last told of, and what it holds now."""

    run_id: str
    told_at: datetime
    places: set[_Place] = field(default_factory=set)


@dataclass(slots=True)
class _Changes:
    """What snapshots of different nodes change, to be written together."""

    opened: list[tuple[Batch, str, list[dict[str, Any]]]] = field(default_factory=list)
    allocated: list[tuple[Batch, str, dict[str, Any]]] = field(default_factory=list)
    let_go: list[tuple[Batch, str, _Place]] = field(default_factory=list)
    told: list[tuple[_Run, datetime]] = field(default_factory=list)
    closed: list[tuple[_Run, datetime]] = field(default_factory=list)


def merge(work: Work, batches: Sequence[Batch]) -> None:
    """Open a run for each new holder, extend those that hold on, close those that let go."""
    waiting = [batch for batch in batches if "holding" in batch.tables]
    while waiting:
        # Snapshots of one node depend on each other: the first of each node, then the next.
        turn = list({(b.cluster, b.node): b for b in reversed(waiting)}.values())
        waiting = [batch for batch in waiting if not any(batch is one for one in turn)]
        _merge_nodes(work, turn)


def _merge_nodes(work: Work, batches: list[Batch]) -> None:
    known, changes = _open_runs(work, batches), _Changes()
    for batch in batches:
        found = records(batch, "holding") or []
        mine = [record for record in found if not str(record["key"]).startswith(SLURM)]
        _compare(batch, mine, known.get((batch.cluster, batch.node), {}), changes)
    _open(work, changes.opened)
    _allocate(work, changes)
    _tell(work, changes.told)
    for run, until in changes.closed:
        _close(work, run, until)


def _open_runs(work: Work, batches: list[Batch]) -> dict[tuple[str, str], dict[str, _Open]]:
    """(cluster, node) -> holder -> its open run."""
    marks = ", ".join("?" * len(batches))
    rows = work.rows(
        "SELECT r.cluster, a.node, r.job_id, r.run_id, r.last_known_at, a.end_at, a.gpu_uuid, "
        "a.mig_uuid, a.share_num, a.share_den FROM job_run r JOIN allocation a "
        "ON a.cluster = r.cluster AND a.run_id = r.run_id "
        f"WHERE a.node IN ({marks}) AND r.source = ? AND r.end_at IS NULL",
        [*(batch.node for batch in batches), SOURCE],
    )
    found: dict[tuple[str, str], dict[str, _Open]] = {}
    for row in rows:
        of_node = found.setdefault((row["cluster"], row["node"]), {})
        run = of_node.setdefault(row["job_id"], _Open(row["run_id"], row["last_known_at"]))
        if row["end_at"] is None:
            run.places.add(tuple(row[name] for name in _PLACE))
    return found


def _compare(
    batch: Batch, mine: list[dict[str, Any]], known: dict[str, _Open], changes: _Changes
) -> None:
    now = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=batch.ts_us)
    for key in sorted({str(record["key"]) for record in mine}):
        places = [record for record in mine if record["key"] == key]
        run = known.pop(key, None)
        if run is None:
            run = _Open(f"{key}@{batch.node}.{round(places[0]['ts'].timestamp())}", now)
            changes.opened.append((batch, run.run_id, places))
        want = {tuple(record[name] for name in _PLACE): record for record in places}
        changes.let_go += [(batch, run.run_id, place) for place in run.places - want.keys()]
        changes.allocated += [
            (batch, run.run_id, want[place]) for place in want if place not in run.places
        ]
        changes.told.append(((batch.cluster, run.run_id), now))
    before = now - _step(batch)
    for run in known.values():
        # It held until the tick before, unless the agent was silent meanwhile; then until it was
        # last told of.
        lately = before - run.told_at <= _TOLD_EVERY + _step(batch)
        until = max(run.told_at, before) if lately else run.told_at
        changes.closed.append(((batch.cluster, run.run_id), until))


def _step(batch: Batch) -> timedelta:
    """Between two ticks of the agent: at the tick before, an ended holder was still there."""
    steps = batch.tables.get("sample", {}).get("step_s") or [0.0]
    return timedelta(seconds=max(steps))


def _open(work: Work, opened: list[tuple[Batch, str, list[dict[str, Any]]]]) -> None:
    if not opened:
        return
    keys = sorted({places[0]["key"] for _, _, places in opened})
    marks = ", ".join("?" * len(keys))
    rows = work.rows(f"SELECT DISTINCT cluster, job_id FROM job WHERE job_id IN ({marks})", keys)
    known = {(row["cluster"], row["job_id"]) for row in rows}
    jobs, runs = [], []
    for batch, run_id, places in opened:
        first = places[0]
        shared = {
            "cluster": batch.cluster, "job_id": first["key"], "account": first["account"],
            "user_name": first["user_name"], "submit_at": first["ts"], "source": SOURCE,
        }  # fmt: skip
        if (batch.cluster, first["key"]) not in known:
            known.add((batch.cluster, first["key"]))
            jobs.append(shared | {"name": first["name"], "req_gpus": len(places)})
        runs.append(
            shared
            | {
                "run_id": run_id, "attempt": 1, "start_at": first["ts"], "state": "RUNNING",
                "gpus": len(places), "nodes": 1, "last_known_at": first["ts"],
            }
        )  # fmt: skip
    _append(work, "job", jobs)
    _append(work, "job_run", runs)


def _allocate(work: Work, changes: _Changes) -> None:
    """What runs hold now; what they held before and do not any more ends."""
    for batch, run_id, place in changes.let_go:
        work.execute(
            "UPDATE allocation SET end_at = make_timestamp(?::BIGINT) WHERE cluster = ? "
            "AND run_id = ? AND node = ? AND end_at IS NULL AND gpu_uuid = ? "
            "AND mig_uuid IS NOT DISTINCT FROM ? AND share_num = ? AND share_den = ?",
            [batch.ts_us, batch.cluster, run_id, batch.node, *place],
        )
    fresh = [
        {name: record[name] for name in _PLACE}
        | {
            "cluster": batch.cluster, "run_id": run_id, "node": batch.node, "gpus": 1,
            "start_at": record["ts"], "source": SOURCE,
        }
        for batch, run_id, record in changes.allocated
    ]  # fmt: skip
    _append(work, "allocation", fresh)


def _append(work: Work, table: str, rows: list[dict[str, Any]]) -> None:
    if rows:
        work.append(table, {name: [row[name] for row in rows] for name in rows[0]})


def _tell(work: Work, told: list[tuple[_Run, datetime]]) -> None:
    if len(told) == 1:
        (run, at), *_ = told
        work.execute(
            "UPDATE job_run SET last_known_at = ? WHERE cluster = ? AND run_id = ? "
            "AND (last_known_at IS NULL OR last_known_at < ?)",
            [at, *run, at],
        )
    elif told:
        work.execute(
            "UPDATE job_run SET last_known_at = make_timestamp(t.at_us) "
            "FROM (SELECT unnest(?::VARCHAR[]) AS cluster, unnest(?::VARCHAR[]) AS run_id, "
            "unnest(?::BIGINT[]) AS at_us) t WHERE job_run.cluster = t.cluster "
            "AND job_run.run_id = t.run_id AND (job_run.last_known_at IS NULL "
            "OR job_run.last_known_at < make_timestamp(t.at_us))",
            [
                [cluster for (cluster, _), _ in told],
                [run_id for (_, run_id), _ in told],
                [micros(at) for _, at in told],
            ],
        )


def _close(work: Work, run: _Run, until: datetime) -> None:
    for table, more in (("allocation", ""), ("job_run", ", state = 'COMPLETED'")):
        work.execute(
            f"UPDATE {table} SET end_at = ?{more} "
            "WHERE cluster = ? AND run_id = ? AND end_at IS NULL",
            [until, *run],
        )
