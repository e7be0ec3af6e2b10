"""CSV logs in the style of SenseTime's Helios and Shanghai AI Lab's Acme: starts, no nodes."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow.compute as pc

from collector.traces.columns import Columns, refused
from collector.traces.stamps import instants, since
from collector.traces.swf import repeats
from collector.traces.trace import Trace, jobs_table

# Both clusters run on China's clock, which knows no daylight saving.
ZONE = timezone(timedelta(hours=8))
_BLANK = ("None", "NULL", "NaT", "nan")
_STATES = {
    "COMPLETED": "COMPLETED",
    "CANCELLED": "CANCELLED",
    "FAILED": "FAILED",
    "TIMEOUT": "TIMEOUT",
    "NODE_FAIL": "NODE_FAIL",
}


def read(path: Path) -> Trace:
    """One job per line; virtual cluster (``vc``) or user is the team.

    Times without a zone are UTC+8. The run time is ``end_time - start_time``; ``duration`` where
    one of them is missing.
    """
    columns = Columns.read(path)
    columns.require("job_id", "gpu_num", "submit_time", "start_time", "end_time", "duration")
    for name, line in repeats(columns.text("job_id"), columns.lines):
        raise refused(path, line, f"job {name} appears a second time", "delete one of the lines")
    submit = instants(columns, "submit_time", ZONE, _BLANK)
    for row, stamp in enumerate(submit):
        if stamp is None:
            raise columns.refused(row, "submit_time is empty")
    origin: datetime = min(stamp for stamp in submit if stamp is not None)
    start = since(origin, instants(columns, "start_time", ZONE, _BLANK))
    end = since(origin, instants(columns, "end_time", ZONE, _BLANK))
    states = columns.names("state")
    jobs = jobs_table(
        {
            "job_id": columns.text("job_id"),
            "submit_s": since(origin, submit),
            "start_s": start,
            "end_s": pc.if_else(pc.is_valid(start), end, None),
            "run_s": pc.coalesce(pc.subtract(end, start), columns.whole("duration", least=0)),
            "gpus": columns.whole("gpu_num", least=0, needed=True),
            "team": columns.names("vc" if "vc" in columns else "user"),
            "user": columns.names("user"),
            "queue": columns.names("vc" if "vc" in columns else "type"),
            "state": [_STATES.get(state or "", "UNKNOWN") for state in states],
            "state_raw": states,
        }
    )
    return Trace(
        jobs=jobs.sort_by("submit_s"),
        format="helios",
        origin=origin,
        remarks=("times without a zone are UTC+8",),
    )
