"""A cluster's past in one neutral table, whatever file it came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

# Times are whole seconds after the trace's origin. NULL = the file does not say.
# gpus: in all; gpu_milli: of each GPU, where the job shares it; cpu_milli and mem_mib: per task.
# gpu_models: the models a job accepts, separated by "|".
# node_names: the node of each GPU held, where the file names it.
SCHEMA = pa.schema(
    [
        ("job_id", pa.string()),
        ("submit_s", pa.int64()),
        ("start_s", pa.int64()),
        ("end_s", pa.int64()),
        ("run_s", pa.int64()),
        ("limit_s", pa.int64()),
        ("gpus", pa.int64()),
        ("tasks", pa.int64()),
        ("gpus_per_task", pa.int64()),
        ("gpu_milli", pa.int64()),
        ("cpu_milli", pa.int64()),
        ("mem_mib", pa.int64()),
        ("gpu_models", pa.string()),
        ("team", pa.string()),
        ("user", pa.string()),
        ("queue", pa.string()),
        ("priority", pa.int64()),
        ("gang", pa.int64()),
        ("preemptible", pa.int64()),
        ("latency_sensitive", pa.int64()),
        ("service", pa.int64()),  # 1: one replica of a service, wanted for run_s from submit_s on
        ("checkpoint_every", pa.int64()),
        ("checkpoint_cost", pa.int64()),
        ("restore_cost", pa.int64()),
        ("min_tasks", pa.int64()),
        ("max_tasks", pa.int64()),
        ("comm_milli", pa.int64()),
        ("topology", pa.string()),
        ("state", pa.string()),
        ("state_raw", pa.string()),
        ("node_names", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What a trace file says. ``dropped``: rows left out, by reason; ``remarks``: rules applied.

    ``origin``: the instant of second 0; None where the file gives no calendar. ``capacity``: the
    processors that the file itself claims for the machine.
    """

    jobs: pa.Table
    format: str
    origin: datetime | None = None
    capacity: int | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def kept(self) -> int:
        """Rows taken."""
        return int(self.jobs.num_rows)

    def column(self, name: str) -> list[Any]:
        """One column as Python values, None where the file does not say."""
        values: list[Any] = self.jobs.column(name).to_pylist()
        return values


def jobs_table(columns: Mapping[str, Any]) -> pa.Table:
    """A table of `SCHEMA`; columns left out are NULL."""
    rows = len(next(iter(columns.values())))
    arrays = []
    for wanted in SCHEMA:
        given = columns.get(wanted.name)
        if given is None:
            arrays.append(pa.nulls(rows, wanted.type))
        elif isinstance(given, pa.Array | pa.ChunkedArray):
            arrays.append(given.cast(wanted.type))
        else:
            arrays.append(pa.array(given, wanted.type))
    return pa.table(arrays, schema=SCHEMA)
