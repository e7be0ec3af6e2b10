"""The pod list of Alibaba's openb cluster (2023): seconds without a calendar, shares of GPUs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.traces.columns import Columns
from collector.traces.trace import Trace, jobs_table

COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
# A pod that was deleted while it ran ended as services do; a pending one was given up.
_STATES = {
    "Running": "COMPLETED",
    "Succeeded": "COMPLETED",
    "Failed": "FAILED",
    "Pending": "CANCELLED",
}


def read(path: Path) -> Trace:
    """One pod per line: held from ``scheduled_time`` to ``deletion_time``, else never started."""
    columns = Columns.read(path)
    columns.require(*COLUMNS)
    submit = columns.whole("creation_time", least=0, needed=True)
    start = columns.whole("scheduled_time", least=0)
    end = columns.whole("deletion_time", least=0)
    milli = columns.whole("gpu_milli", least=0, needed=True)
    gpus = columns.whole("num_gpu", least=0, needed=True)
    _refuse_backwards(columns, submit, start, end)
    shared = pc.and_(pc.equal(gpus, 1), pc.less(milli, 1000))
    phases = columns.text("pod_phase")
    return Trace(
        jobs=jobs_table(
            {
                "job_id": columns.text("name"),
                "submit_s": submit,
                "start_s": start,
                "end_s": end,
                "run_s": pc.subtract(end, start),
                "gpus": gpus,
                "tasks": pa.array([1] * len(columns)),
                "gpus_per_task": gpus,
                "gpu_milli": pc.if_else(shared, milli, None),
                "cpu_milli": columns.whole("cpu_milli", least=0, needed=True),
                "mem_mib": columns.whole("memory_mib", least=0, needed=True),
                "gpu_models": columns.names("gpu_spec"),
                "queue": columns.names("qos"),
                "state": [_STATES.get(phase, "UNKNOWN") for phase in phases],
                "state_raw": phases,
            }
        ),
        format="openb",
        remarks=("pods deleted while they ran count as completed",),
    )


def _refuse_backwards(columns: Columns, submit: pa.Array, start: pa.Array, end: pa.Array) -> None:
    pairs = (
        ("scheduled_time", start, "creation_time", submit),
        ("deletion_time", end, "scheduled_time", start),
    )
    for late, after, early, before in pairs:
        wrong = pc.fill_null(pc.less(after, before), False).to_numpy(zero_copy_only=False)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise columns.refused(row, f"{late} lies before {early}")
