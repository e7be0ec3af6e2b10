"""Our own job table, CSV or Parquet: `job_id, submit, run, gpus` and what else is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collector.traces.columns import Columns, refused
from collector.traces.swf import repeats
from collector.traces.trace import Trace, jobs_table

REQUIRED = ("job_id", "submit", "run", "gpus")
# Column of the file -> column of the trace, for those that are taken over as they stand.
_WHOLE = {
    "limit": "limit_s",
    "start": "start_s",
    "tasks": "tasks",
    "gpus_per_task": "gpus_per_task",
    "gpu_milli": "gpu_milli",
    "mem_mib_per_task": "mem_mib",
    "checkpoint_every": "checkpoint_every",
    "checkpoint_cost": "checkpoint_cost",
    "restore_cost": "restore_cost",
    "min_tasks": "min_tasks",
    "max_tasks": "max_tasks",
}
_TEXT = {
    "gpu_model": "gpu_models",
    "team": "team",
    "user": "user",
    "queue": "queue",
    "topology": "topology",
}
_FLAGS = ("gang", "preemptible", "latency_sensitive", "service")
_MILLI = {"cpus_per_task": "cpu_milli", "comm_fraction": "comm_milli"}
KNOWN = frozenset({*REQUIRED, *_WHOLE, *_TEXT, *_FLAGS, *_MILLI, "priority", "state"})
_TRUTH = {"true": 1, "yes": 1, "1": 1, "false": 0, "no": 0, "0": 0}


def read(path: Path) -> Trace:
    """One job per row; times in seconds, fractions round half up. Job ids must differ."""
    columns = _parquet(path) if path.suffix == ".parquet" else Columns.read(path)
    columns.require(*REQUIRED)
    for name, line in repeats(columns.text("job_id"), columns.lines):
        what = f"job {name} appears a second time"
        raise refused(path, line, what, "give each job an id of its own")
    start = columns.whole("start")
    run = columns.whole("run", needed=True)
    states = columns.names("state")
    given = {
        "job_id": columns.text("job_id"),
        "submit_s": columns.whole("submit", needed=True),
        "run_s": run,
        "gpus": columns.whole("gpus", needed=True),
        "end_s": pc.add(start, run),
        "priority": columns.whole("priority"),
        "state": states if "state" in columns else None,
        "state_raw": states if "state" in columns else None,
    }
    given |= {ours: columns.whole(name, least=0) for name, ours in _WHOLE.items()}
    given |= {ours: columns.names(name) for name, ours in _TEXT.items()}
    given |= {ours: _thousandths(columns, name) for name, ours in _MILLI.items()}
    given |= {name: _flags(columns, name) for name in _FLAGS}
    unused = [name for name in columns.header if name not in KNOWN]
    remarks = (f"columns not used: {', '.join(unused)}",) if unused else ()
    return Trace(jobs=jobs_table(given), format="jobs", remarks=remarks)


def _parquet(path: Path) -> Columns:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise refused(path, None, f"not a Parquet file ({error})", "check the path") from None
    # Line n of the messages is then row n of the table.
    columns = Columns(path, table.column_names, list(range(1, table.num_rows + 1)))
    for name in table.column_names:
        text = pc.fill_null(pc.cast(table.column(name), pa.string()), "")
        columns.add(name, text.to_pylist())
    return columns


def _thousandths(columns: Columns, name: str) -> pa.Array:
    values, known = columns.numbers(name)
    negative = np.flatnonzero(values < 0)
    if len(negative):
        row = int(negative[0])
        raise columns.refused(row, f"{name} is {columns.text(name)[row]!r}, less than 0")
    return pa.array(np.floor(values * 1000 + 0.5).astype(np.int64), mask=~known)


def _flags(columns: Columns, name: str) -> list[int | None]:
    found: list[int | None] = []
    for row, text in enumerate(columns.names(name)):
        if text is not None and text.lower() not in _TRUTH:
            raise columns.refused(row, f"{name} is {text!r}, not true or false")
        found.append(None if text is None else _TRUTH[text.lower()])
    return found
