"""Microsoft's ITP clusters: submit in seconds, duration, GPUs; no starts, no nodes."""

from __future__ import annotations

from pathlib import Path

from collector.traces.columns import Columns, refused
from collector.traces.swf import repeats
from collector.traces.trace import Trace, jobs_table


def read(path: Path) -> Trace:
    """One job per line, ordered by submit; ties keep the order of the file."""
    columns = Columns.read(path)
    columns.require("job_id", "submission_time", "duration", "num_gpu")
    for name, line in repeats(columns.text("job_id"), columns.lines):
        raise refused(path, line, f"job {name} appears a second time", "delete one of the lines")
    jobs = jobs_table(
        {
            "job_id": columns.text("job_id"),
            "submit_s": columns.whole("submission_time", needed=True),
            "run_s": columns.whole("duration", least=0, needed=True),
            "gpus": columns.whole("num_gpu", least=0, needed=True),
        }
    )
    return Trace(jobs=jobs.sort_by("submit_s"), format="itp")
