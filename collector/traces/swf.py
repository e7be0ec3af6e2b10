"""Standard Workload Format, as in the Parallel Workloads Archive; processors count as GPUs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from collector.traces.columns import opened, refused
from collector.traces.trace import Trace, jobs_table

_FIELDS = 18
_HEADER = re.compile(r"^;\s*(\w+):\s*(.*?)\s*$")
_NODES = re.compile(r"\{([^}]*)\}")
_PARTIAL = {"2", "3", "4"}  # bursts of a job that a line of its own sums up
_STATES = {0: "FAILED", 1: "COMPLETED", 5: "CANCELLED"}
_LIKELY_EPOCH = 10**9  # a first submit after September 2001 is a date and not an offset

Ints = NDArray[np.int64]


def read(path: Path) -> Trace:
    """One job per line of 18 numbers, or 21 fields with a list of node numbers in braces.

    GPUs are the requested processors, else those used. Lines of partial executions (status 2 to 4)
    are dropped. Requested time is the limit. Second 0 is ``UnixStartTime`` where the header has it.
    """
    header, lines, rows, extra = _lines(path)
    if not rows:
        raise refused(path, None, "no jobs", "give a file in Standard Workload Format")
    table = _numbers(path, lines, rows)
    partial = np.isin(table[:, 10], [2, 3, 4])
    dropped = Counter({"part of a job that another line sums up": int(partial.sum())})
    table, kept = table[~partial], np.flatnonzero(~partial)
    origin, shift, remarks = _origin(header, table)
    table[:, 1] -= shift
    trace = Trace(
        jobs=_jobs(table, [extra[i] for i in kept]),
        format="swf",
        origin=origin,
        capacity=_whole(header.get("MaxProcs", "")),
        dropped={reason: count for reason, count in dropped.items() if count},
        remarks=remarks,
    )
    _refuse_repeats(path, trace, [lines[i] for i in kept])
    return trace


def _lines(path: Path) -> tuple[dict[str, str], list[int], list[list[str]], list[list[str]]]:
    header: dict[str, str] = {}
    lines, rows, extra = [], [], []
    with opened(path) as text:
        for number, line in enumerate(text, start=1):
            if line.startswith(";"):
                if found := _HEADER.match(line):
                    header.setdefault(found[1], found[2])
                continue
            fields = line.split()
            if not fields:
                continue
            if len(fields) < _FIELDS:
                what = f"{len(fields)} fields, a job has {_FIELDS}"
                raise refused(path, number, what, "complete or delete the line")
            lines.append(number)
            rows.append(fields[:_FIELDS])
            extra.append(fields[_FIELDS:])
    return header, lines, rows, extra


def _numbers(path: Path, lines: list[int], rows: list[list[str]]) -> Ints:
    try:
        values = np.array(rows, dtype=np.float64)
    except ValueError:
        for number, fields in zip(lines, rows, strict=True):
            for field in fields:
                _checked(path, number, field)
        raise
    return np.floor(values + 0.5).astype(np.int64)


def _checked(path: Path, number: int, field: str) -> None:
    try:
        float(field)
    except ValueError:
        what = f"{field!r} is not a number"
        raise refused(path, number, what, "correct or delete the line") from None


def _origin(header: dict[str, str], table: Ints) -> tuple[datetime | None, int, tuple[str, ...]]:
    start = _whole(header.get("UnixStartTime", ""))
    if start:
        return datetime.fromtimestamp(start, UTC), 0, ()
    first = int(table[:, 1].min())
    if first > _LIKELY_EPOCH:
        remark = f"submit times are seconds since 1970; second 0 is the first submit, {first}"
        return datetime.fromtimestamp(first, UTC), first, (remark,)
    return None, 0, ()


def _jobs(table: Ints, extra: list[list[str]]) -> pa.Table:
    submit, wait, run = table[:, 1], table[:, 2], table[:, 3]
    size = np.where(table[:, 7] > 0, table[:, 7], table[:, 4])
    started = (wait >= 0) & (run >= 0)
    used = np.where(table[:, 4] > 0, table[:, 4], size)
    names = [_named(fields, int(count)) for fields, count in zip(extra, used, strict=True)]
    queues = [_queue(fields, int(code)) for fields, code in zip(extra, table[:, 14], strict=True)]
    return jobs_table(
        {
            "job_id": [str(number) for number in table[:, 0]],
            "submit_s": submit,
            "start_s": pa.array(submit + wait, mask=~started),
            "end_s": pa.array(submit + wait + run, mask=~started),
            "run_s": pa.array(run, mask=run < 0),
            "limit_s": pa.array(table[:, 8], mask=table[:, 8] <= 0),
            "gpus": np.maximum(size, 0),
            "user": [str(code) if code >= 0 else None for code in table[:, 11]],
            "team": [str(code) if code >= 0 else None for code in table[:, 12]],
            "queue": queues,
            "state": [_STATES.get(int(code), "UNKNOWN") for code in table[:, 10]],
            "state_raw": [str(code) for code in table[:, 10]],
            "node_names": names,
        }
    )


def _named(fields: list[str], used: int) -> list[str] | None:
    found = _NODES.search(" ".join(fields))
    if found is None:
        return None
    names = [f"node{name.strip()}" for name in found[1].split(",") if name.strip()]
    return names if len(names) == used else None  # a list that contradicts the count says nothing


def _queue(fields: list[str], code: int) -> str | None:
    if len(fields) >= 2 and fields[0].startswith("{"):
        return fields[1]
    return str(code) if code >= 0 else None


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _refuse_repeats(path: Path, trace: Trace, lines: list[int]) -> None:
    for name, line in repeats(trace.column("job_id"), lines):
        what = f"job {name} appears a second time"
        raise refused(path, line, what, "number the jobs anew, or delete one of the lines")


def repeats(names: list[str], lines: list[int]) -> Iterator[tuple[str, int]]:
    """Names that came before, with the line of the repeat."""
    seen = set()
    for name, line in zip(names, lines, strict=True):
        if name in seen:
            yield name, line
        seen.add(name)
