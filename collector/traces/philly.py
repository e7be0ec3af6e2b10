"""Microsoft's Philly trace as one CSV: local times without a zone, no starts, no nodes."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from collector.traces.columns import Columns, refused
from collector.traces.stamps import ambiguous, instants, since
from collector.traces.trace import Trace, jobs_table

ZONE = "America/Los_Angeles"


def read(path: Path) -> Trace:
    """Jobs by submit time, numbered in that order; virtual clusters are teams and queues.

    The file's times are Pacific local times. It spans the end of daylight saving on 2017-11-05:
    what comes after is an hour later than a difference of the printed times says, and a time in the
    repeated hour means the first of its two instants.
    """
    columns = Columns.read(path)
    columns.require("timestamp", "duration", "num_gpus", "cluster")
    zone = _zone(path)
    found = instants(columns, "timestamp", zone)
    for row, stamp in enumerate(found):
        if stamp is None:
            raise columns.refused(row, "timestamp is empty")
    origin = min(stamp for stamp in found if stamp is not None)
    twice = ambiguous(found, zone)
    jobs = jobs_table(
        {
            "job_id": [""] * len(columns),
            "submit_s": since(origin, found),
            "run_s": columns.whole("duration", least=0, needed=True),
            "gpus": columns.whole("num_gpus", least=0, needed=True),
            "team": columns.names("cluster"),
            "queue": columns.names("cluster"),
        }
    ).sort_by("submit_s")  # stable: equal times keep the order of the file
    numbered = [f"{i + 1}" for i in range(len(columns))]
    jobs = jobs.set_column(0, "job_id", [numbered])
    remarks = (
        f"times are {ZONE} local times, taken to UTC",
        f"{twice} submits lie in the repeated hour of a clock change: the first instant is meant",
    )
    return Trace(jobs=jobs, format="philly", origin=origin, remarks=remarks)


def _zone(path: Path) -> ZoneInfo:
    try:
        return ZoneInfo(ZONE)
    except ZoneInfoNotFoundError:
        what = f"its local times need the time zone {ZONE}, which this machine does not know"
        raise refused(path, None, what, "install the package tzdata") from None
