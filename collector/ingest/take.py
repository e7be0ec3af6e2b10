"""Batches into the store, as many together as came together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from collector.agent.batch import Batch, Columns
from collector.agent.tables import APPENDED
from collector.errors import AgentConflictError, BatchRefusedError, CollectorError
from collector.ingest import holdings, inventory, runs
from collector.ingest.coverage import SOURCE, cover
from collector.ingest.taken import Taken, prune
from collector.store import Work

__all__ = ["prune", "take", "take_all"]

# Two clocks further apart than this cannot be told from an agent that lives in the future, and a
# row of the future would hide everything that comes after it.
MOST_AHEAD = timedelta(minutes=5)
_TYPES = {
    "text": pa.string(), "float": pa.float64(), "int": pa.int64(), "bool": pa.bool_(),
    "time": pa.timestamp("us"),
}  # fmt: skip


def take(work: Work, batch: Batch, now: datetime) -> int:
    """Write the batch and return its rows, 0 if it was taken before.

    To be called inside a transaction. Raises BatchRefusedError for a batch that can never be
    taken, AgentConflictError while another agent speaks for the node.
    """
    taken = take_all(work, [batch], now)[0]
    if isinstance(taken, CollectorError):
        raise taken
    return taken


def take_all(work: Work, batches: Sequence[Batch], now: datetime) -> list[int | CollectorError]:
    """`take` for several batches in the order they came; what a statement costs is shared.

    A batch that is refused costs the others nothing. Raises BatchRefusedError when the values of
    one cannot be stored: then nothing is written, and each must be taken alone.
    """
    taken = Taken(work, batches, now)
    results: list[int | CollectorError] = []
    accepted: list[Batch] = []
    for batch in batches:
        try:
            _check_clock(batch, now)
            fresh = taken.admit(batch)
        except (BatchRefusedError, AgentConflictError) as error:
            results.append(error)
            continue
        results.append(batch.row_count if fresh else 0)
        if fresh:
            accepted.append(batch)
    if accepted:
        _write(work, accepted)
        taken.save(work)
    return results


def _write(work: Work, batches: list[Batch]) -> None:
    resolved = runs.resolve(work, batches)
    for table in APPENDED:
        parts = [(b, b.tables[table]) for b in batches if any(b.tables.get(table, {}).values())]
        if parts:
            work.append(table, _table(table, parts, resolved))
    for batch in batches:
        inventory.merge(work, batch)
    holdings.merge(work, batches)
    cover(work, batches)


def _check_clock(batch: Batch, now: datetime) -> None:
    try:
        made = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=batch.ts_us)
    except OverflowError:
        raise BatchRefusedError(f"the batch says it was made {batch.ts_us} us after 1970") from None
    if made - now > MOST_AHEAD:
        raise BatchRefusedError(
            f"the clock of {batch.node} is {made - now} ahead of the service's: set it (NTP); "
            "nothing of this batch was taken"
        )


def _table(table: str, parts: list[tuple[Batch, Columns]], resolved: runs.Resolved) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [] for name in ("cluster", "node", "source")}
    columns |= {name: [] for name in APPENDED[table]}
    for batch, given in parts:
        height = max(len(values) for values in given.values())
        columns["cluster"] += [batch.cluster] * height
        columns["node"] += [batch.node] * height
        columns["source"] += [SOURCE] * height
        for name in APPENDED[table]:
            values = given.get(name) or [None] * height
            if name == "run_id":
                values = resolved.of(batch.cluster, values, given["ts"])
            columns[name] += values
    kinds = APPENDED[table]
    arrays: dict[str, pa.Array] = {}
    for name, values in columns.items():
        try:
            arrays[name] = pa.array(values, _TYPES[kinds.get(name, "text")])
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise BatchRefusedError(f"{table}.{name}: {error}; nothing was taken") from error
    return pa.table(arrays)
