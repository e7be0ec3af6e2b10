"""Jobs of a trace for the simulator, and the count of every row that could not become one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from collector.traces.formats import read_trace
from collector.traces.trace import Trace
from scheduler_advisor.checkpoints import Checkpoints
from scheduler_advisor.engine.jobs import Jobs
from scheduler_advisor.readers.communication import Measured
from scheduler_advisor.readers.errors import ReaderError

Ints = NDArray[np.int64]

# Columns of a trace that the simulator has under the same name; NULL = its default.
_SAME = (
    "gpu_milli",
    "cpu_milli",
    "mem_mib",
    "priority",
    "preemptible",
    "latency_sensitive",
    "service",
    "checkpoint_every",
    "checkpoint_cost",
    "restore_cost",
    "min_tasks",
    "max_tasks",
    "comm_milli",
)
_NAMED = {"team": "team", "user": "user", "queue": "qos", "gpu_models": "gpu_models"}


class Overrun(StrEnum):
    """What becomes of a job that ran longer than its limit."""

    RAISE = "raise"
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class JobsRead:
    """Jobs, rows kept and dropped by reason, and what was changed or assumed on the way."""

    jobs: Jobs
    format: str
    kept: int
    dropped: Mapping[str, int]
    remarks: tuple[str, ...]
    capacity: int | None
    observed_wait_s: Ints | None
    """Wait of each job in the past, by job; None where the trace has no starts."""
    communication: Measured | None = None
    """What is known of the gangs' communication, where it was asked for."""
    checkpoints: Checkpoints | None = None
    """How the jobs write checkpoints and what stopped them, by job; None where nothing shows it."""

    def lines(self) -> list[str]:
        """Rows kept and dropped, for people."""
        dropped = [f"  skipped {count:,}: {reason}" for reason, count in self.dropped.items()]
        return [
            f"{self.kept:,} jobs read ({self.format})",
            *dropped,
            *[f"  {remark}" for remark in self.remarks],
        ]


def read_jobs(path: Path, kind: str | None = None, overrun: Overrun = Overrun.RAISE) -> JobsRead:
    """The jobs in a trace file; the format is detected unless ``kind`` names it.

    A limit below the run time is raised to it, or with ``Overrun.KILL`` the job ends at the limit.
    Raises ImportRefusedError for a broken file and ReaderError where no job is left.
    """
    return jobs_of(read_trace(path, kind), overrun, where=path.name)


def jobs_of(trace: Trace, overrun: Overrun = Overrun.RAISE, *, where: str = "trace") -> JobsRead:
    """The jobs of a trace that was read already."""
    table, skipped = _usable(trace.jobs)
    if table.num_rows == 0:
        told = ", ".join(f"{count} x {reason}" for reason, count in skipped.items())
        raise ReaderError(f"{where}: no job can be replayed ({told}); check --format")
    columns, remarks = _columns(table, overrun, where)
    jobs = Jobs.build(**columns)
    if overrun is Overrun.RAISE and jobs.raised_limits:
        remarks.append(
            f"{jobs.raised_limits:,} limits lay below the run time and were raised to it"
        )
    dropped = {**trace.dropped, **skipped}
    waits = _waits(table)
    return JobsRead(
        jobs=jobs,
        format=trace.format,
        kept=len(jobs),
        dropped={reason: count for reason, count in dropped.items() if count},
        remarks=(*trace.remarks, *remarks),
        capacity=trace.capacity,
        observed_wait_s=waits,
    )


def _usable(table: pa.Table) -> tuple[pa.Table, dict[str, int]]:
    """Rows that have run and asked for something, in the order of submit."""
    run = _filled(table, "run_s", -1)
    nothing = (_filled(table, "gpus", 0) <= 0) & (_filled(table, "cpu_milli", 0) <= 0)
    never = run < 0
    instant = (run == 0) & ~never
    empty = nothing & ~never & ~instant
    skipped = {
        "never ran: no run time is known": int(never.sum()),
        "run time of 0 or less": int(instant.sum()),
        "asks for no GPU and no CPU": int(empty.sum()),
    }
    kept = table.filter(pa.array(~(never | instant | empty)))
    order = np.argsort(_filled(kept, "submit_s", 0), kind="stable")
    return kept.take(pa.array(order)), skipped


def _columns(table: pa.Table, overrun: Overrun, where: str) -> tuple[dict[str, Any], list[str]]:
    run = _filled(table, "run_s", 0)
    limit = np.where(_known(table, "limit_s"), _filled(table, "limit_s", 0), run)
    remarks = []
    if overrun is Overrun.KILL:
        over = int((run > limit).sum())
        run = np.minimum(run, np.maximum(limit, 1))
        if over:
            remarks.append(f"{over:,} jobs ran over their limit and end at it")
    tasks, per_task, rest = _shape(table, where)
    columns = {
        "job_id": table.column("job_id").to_pylist(),
        "submit": _filled(table, "submit_s", 0),
        "run": run,
        "limit": limit,
        "gpus": np.maximum(_filled(table, "gpus", 0), 0),
        "tasks": tasks,
        "gpus_per_task": per_task,
        "rest_gpus": rest,
        "gang": _filled(table, "gang", 1),
        "topology": _texts(table, "topology"),
        **{name: _filled(table, name, 0) for name in _SAME},
        **{ours: _texts(table, name) for name, ours in _NAMED.items()},
    }
    return columns, remarks


def _shape(table: pa.Table, where: str) -> tuple[Ints, Ints, Ints]:
    """Tasks, GPUs of each, and GPUs of one more task; all 0 = the shape follows from the nodes."""
    gpus = _filled(table, "gpus", 0)
    tasks, each = _filled(table, "tasks", 0), _filled(table, "gpus_per_task", 0)
    both = (tasks > 0) & _known(table, "gpus_per_task")
    wrong = np.flatnonzero(both & (tasks * each != gpus))
    if len(wrong):
        row = int(wrong[0])
        raise ReaderError(
            f"{where}: job {table.column('job_id')[row]} asks for {gpus[row]} GPUs in {tasks[row]} "
            f"tasks of {each[row]}; make tasks x gpus_per_task equal to gpus, or leave one out"
        )
    by_tasks = (tasks > 0) & ~both
    by_size = (tasks == 0) & (each > 0)
    parts = np.maximum(tasks, 1)
    each = np.where(by_tasks, gpus // parts, each)
    rest = np.where(by_tasks, gpus - each * tasks, 0)
    size = np.maximum(each, 1)
    tasks = np.where(by_size, gpus // size, tasks)
    rest = np.where(by_size, gpus % size, rest)
    none = (tasks == 0) & (rest > 0)  # fewer GPUs than one task has: a single task of them
    tasks = np.where(none, 1, tasks)
    each = np.where(none, rest, each)
    rest = np.where(none, 0, rest)
    single = (tasks == 0) & (gpus == 0)  # CPU only
    return np.where(single, 1, tasks), np.where(tasks == 0, 0, each), rest


def _waits(table: pa.Table) -> Ints | None:
    start = table.column("start_s")
    if start.null_count:
        return None
    return _filled(table, "start_s", 0) - _filled(table, "submit_s", 0)


def _filled(table: pa.Table, name: str, default: int) -> Ints:
    filled = pc.fill_null(table.column(name), default)
    values: Ints = filled.to_numpy().astype(np.int64)
    return values


def _known(table: pa.Table, name: str) -> NDArray[np.bool_]:
    known: NDArray[np.bool_] = pc.is_valid(table.column(name)).to_numpy()
    return known


def _texts(table: pa.Table, name: str) -> list[str]:
    texts: list[str] = pc.fill_null(table.column(name), "").to_pylist()
    return texts
