"""The rules that turn sacct's rows into runs: one per key, closed where Slurm knows the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.slurm import clock_change, job_state
from collector.slurm.refusal import refusal
from collector.slurm.sacct import RunBatch

_NONE = pa.scalar(None, pa.int64())


@dataclass(frozen=True, slots=True)
class Window:
    """``[since, until)`` in epoch seconds; None = to be taken from the runs."""

    since: int | None
    until: int | None


def settled(batch: RunBatch) -> tuple[RunBatch, list[str]]:
    """Runs with ``run_id`` and ``known_s`` (an open run is known to hold until then), and remarks.

    A row that never got a node has no start. Slurm counts a run that ends before it starts as 0
    seconds; so do we. A row without end in a final state ends after its elapsed time.
    """
    table, remarks = batch.table, list[str]()
    table = _set(table, "start", _real_start(batch))
    if batch.local:
        table, moved = clock_change.repaired(table)
        remarks += [f"{moved} runs lie in the hour that a clock change repeats"] if moved else []
    start, end = table["start"], table["end"]
    backwards = pc.fill_null(pc.less(end, start), fill_value=False)
    if pc.any(backwards).as_py():
        remarks.append(f"{_count(backwards)} runs end before they start: taken as 0 seconds long")
        table = _set(table, "end", pc.if_else(backwards, start, end))
    held_until = _held_until(table)
    final = pc.invert(pc.is_in(table["state"], pa.array(sorted(job_state.OPEN))))
    lost_end = pc.and_(pc.and_(pc.is_null(table["end"]), pc.is_valid(start)), final)
    if pc.any(lost_end).as_py():
        remarks.append(
            f"{_count(lost_end)} runs are over but have no End: it was taken from Elapsed"
        )
        table = _set(table, "end", pc.if_else(lost_end, held_until, table["end"]))
    table = _set(table, "known", pc.if_else(pc.is_null(table["end"]), held_until, _NONE))
    table = table.append_column("run_id", _run_ids(table))
    return _one_per_key(batch.with_table(table, {})), remarks


def within(batch: RunBatch, window: Window, now_s: int) -> tuple[RunBatch, int, int]:
    """The runs that touch the window, and the window: by default first submit to last end.

    The last end includes the instant up to which open runs are known. An end after ``now_s`` (a
    clock that was wrong once) says nothing of it as long as there is another one. Raises
    ImportRefusedError where no window can be told.
    """
    table = batch.table
    since = window.since if window.since is not None else pc.min(table["submit"]).as_py()
    until = window.until if window.until is not None else _last_end(table, now_s)
    if since is None or until is None or since >= until:
        what = "no job has ended or runs in it, so the time that it covers is not known"
        if since is not None and until is not None:
            what = "the window is empty: its end is not after its begin"
        raise refusal(batch.source, None, what, "Give --since and --until")
    ended = pc.fill_null(pc.less_equal(table["end"], since), fill_value=False)
    # A run of no length at the very begin still belongs to the window that it begins.
    ended = pc.and_(ended, pc.less(table["submit"], since))
    outside = pc.or_(ended, pc.greater_equal(table["submit"], until))
    kept = table.filter(pc.invert(outside))
    return batch.with_table(kept, {"outside the window": _count(outside)}), since, until


def _real_start(batch: RunBatch) -> pa.ChunkedArray:
    table = batch.table
    empty = pa.array([not names for names in batch.nodelists], pa.bool_()).take(table["node_code"])
    no_tres = pa.array([held is None for held in batch.alloc], pa.bool_()).take(table["alloc_code"])
    ran = pc.greater(pc.fill_null(table["elapsed_s"], 0), 0)
    never = pc.and_(pc.and_(empty, no_tres), pc.invert(ran))
    never = pc.or_(never, pc.equal(table["state"], "PENDING"))
    return pc.if_else(never, _NONE, table["start"])


def _held_until(table: pa.Table) -> pa.ChunkedArray:
    """Start + Elapsed + Suspended: the end, or for an open run the instant of the query."""
    held = pc.add(table["elapsed_s"], pc.fill_null(table["suspended_s"], 0))
    return pc.add(table["start"], held)


def _run_ids(table: pa.Table) -> pa.Array:
    start = pc.fill_null(pc.cast(table["start"], pa.string()), "pending")
    submit = pc.cast(table["submit"], pa.string())
    return pc.binary_join_element_wise(table["job_id"], submit, start, ".").combine_chunks()


def _one_per_key(batch: RunBatch) -> RunBatch:
    """One row per run id, a closed one before an open one, then the later line; and no pending row
    of a submission that has started since."""
    table = batch.table
    code = table["job_id"].combine_chunks().dictionary_encode().indices
    job = np.asarray(code)
    submit = np.asarray(table["submit"])
    start = np.asarray(pc.fill_null(table["start"], -1))
    closed = np.asarray(pc.is_valid(table["end"]))
    order = np.lexsort((np.asarray(table["line"]), closed, start, submit, job))
    same = (job[order][1:] == job[order][:-1]) & (submit[order][1:] == submit[order][:-1])
    twice = same & (start[order][1:] == start[order][:-1])
    overtaken = same & ~twice & (start[order][:-1] == -1)
    keep = np.ones(len(order), dtype=bool)
    keep[order[:-1][twice | overtaken]] = False
    dropped = {
        "duplicate": int(twice.sum()),
        "pending row of a run that started": int(overtaken.sum()),
    }
    return batch.with_table(table.filter(pa.array(keep)), dropped)


def _last_end(table: pa.Table, now_s: int) -> int | None:
    ends = pc.drop_null(pa.chunked_array([*table["end"].chunks, *table["known"].chunks]))
    past = ends.filter(pc.less_equal(ends, now_s))
    last: int | None = pc.max(past if len(past) else ends).as_py()
    return last


def _set(table: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    index = table.schema.get_field_index(name)
    if index < 0:
        return table.append_column(name, values)
    return table.set_column(index, name, values)


def _count(mask: pa.ChunkedArray) -> int:
    return int(pc.sum(mask).as_py() or 0)
