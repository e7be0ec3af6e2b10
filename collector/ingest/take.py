"""One batch into the store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from collector.agent.batch import Batch, Columns
from collector.agent.tables import APPENDED
from collector.errors import AgentConflictError, BatchRefusedError
from collector.ingest import holdings, inventory, runs
from collector.store import Work

SOURCE = "agent"
# Two clocks further apart than this cannot be told from an agent that lives in the future, and a
# row of the future would hide everything that comes after it.
MOST_AHEAD = timedelta(minutes=5)
# An agent that was heard of within this time is alive; another one for the same node must wait.
ALIVE = timedelta(minutes=2)
_TYPES = {
    "text": pa.string(), "float": pa.float64(), "int": pa.int64(), "bool": pa.bool_(),
    "time": pa.timestamp("us"),
}  # fmt: skip


def take(work: Work, batch: Batch, now: datetime) -> int:
    """Write the batch and return its rows, 0 if it was taken before.

    To be called inside a transaction. Raises BatchRefusedError for a batch that can never be
    taken, AgentConflictError while another agent speaks for the node.
    """
    _check_clock(batch, now)
    if _taken(work, batch, now):
        return 0
    resolved = runs.resolve(work, batch)
    rows = sum(
        work.append(table, _table(table, columns, batch, resolved))
        for table, columns in batch.tables.items()
        if table in APPENDED and any(columns.values())
    )
    rows += inventory.merge(work, batch)
    rows += holdings.merge(work, batch)
    _cover(work, batch)
    work.execute(
        "INSERT INTO ingest_batch (node, agent_id, boot_id, sequence, ts, row_count) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        [batch.node, batch.agent_id, batch.boot_id, batch.sequence, now, batch.row_count],
    )
    return rows


def prune(work: Work, before: datetime) -> None:
    """Forget batches taken before ``before``; older than the longest time a spool can keep one."""
    work.execute("DELETE FROM ingest_batch WHERE ts < ?", [before])


def at(micros: int) -> datetime:
    """The aware time of microseconds since 1970."""
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)


def _check_clock(batch: Batch, now: datetime) -> None:
    try:
        made = at(batch.ts_us)
    except OverflowError:
        raise BatchRefusedError(f"the batch says it was made {batch.ts_us} us after 1970") from None
    if made - now > MOST_AHEAD:
        raise BatchRefusedError(
            f"the clock of {batch.node} is {made - now} ahead of the service's: set it (NTP); "
            "nothing of this batch was taken"
        )


def _taken(work: Work, batch: Batch, now: datetime) -> bool:
    """Whether the batch is in already; raises AgentConflictError while another agent is alive."""
    found = work.rows(
        "SELECT agent_id, max(ts) AS heard, "
        "bool_or(agent_id = $2 AND boot_id = $3 AND sequence = $4) AS same FROM ingest_batch "
        "WHERE node = $1 AND (ts > $5 OR (agent_id = $2 AND boot_id = $3 AND sequence = $4)) "
        "GROUP BY agent_id",
        [batch.node, batch.agent_id, batch.boot_id, batch.sequence, now - ALIVE],
    )
    if any(row["same"] for row in found):
        return True
    others = [row for row in found if row["agent_id"] != batch.agent_id]
    if others:
        raise AgentConflictError(
            f"agent {others[0]['agent_id']} spoke for {batch.node} at "
            f"{others[0]['heard']:%H:%M:%S}, now {batch.agent_id} does, too: stop one of them (or "
            "give each node a name of its own with --node); it is taken "
            f"{ALIVE.seconds} s after the other fell silent"
        )
    return False


def _table(table: str, columns: Columns, batch: Batch, resolved: runs.Resolved) -> pa.Table:
    kinds = APPENDED[table]
    height = max(len(values) for values in columns.values())
    arrays: dict[str, Any] = {
        "cluster": pa.array([batch.cluster] * height, pa.string()),
        "node": pa.array([batch.node] * height, pa.string()),
        "source": pa.array([SOURCE] * height, pa.string()),
    }
    for name, values in columns.items():
        if name == "run_id":
            values = resolved.of(values, columns["ts"])
        try:
            arrays[name] = pa.array(values, _TYPES[kinds[name]])
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise BatchRefusedError(f"{table}.{name}: {error}; nothing was taken") from error
    return pa.table(arrays)


def _cover(work: Work, batch: Batch) -> None:
    """The node's telemetry covers the time of these samples; beyond that it is unknown."""
    samples = batch.tables.get("sample") or {}
    times = samples.get("ts") or []
    if not times:
        return
    step = timedelta(seconds=max(samples["step_s"]))
    first, last = at(min(times)) - step, at(max(times))
    key = [batch.cluster, batch.node, SOURCE]
    where = "cluster = ? AND node = ? AND source = ? AND kind = 'telemetry'"
    touching = f"{where} AND until >= ? AND since <= ?"
    reach = [first - step, last + step]  # a tick that came a little late leaves no gap
    grown = work.rows(
        f"UPDATE fact_window SET since = least(since, ?), until = greatest(until, ?) "
        f"WHERE {touching} RETURNING since, until",
        [first, last, *key, *reach],
    )
    if len(grown) == 1:
        return
    if grown:  # the batch closes a gap: several windows become one
        first = min(window["since"] for window in grown)
        last = max(window["until"] for window in grown)
        reach = [first - step, last + step]
        work.execute(f"DELETE FROM fact_window WHERE {touching}", [*key, *reach])
    columns = {
        "cluster": [batch.cluster], "kind": ["telemetry"], "node": [batch.node],
        "since": [first], "until": [last], "source": [SOURCE],
    }  # fmt: skip
    work.append("fact_window", columns)
