"""Which runs are suspected to hang or lost work, and what that rests on."""

from __future__ import annotations

from fractions import Fraction

from analytics.questions import statement
from analytics.reports.amounts import nine
from analytics.reports.report import Row
from analytics.reports.table import TableReport
from analytics.window import Window
from collector.store import Store

REMARK = (
    "overlays beside the classes, by whole hours: suspect_hang and possibly_lost are modelled, "
    "lost is part of the ledger"
)


def evidence_report(
    store: Store, window: Window, *, cluster: str | None = None, job: str | None = None
) -> TableReport:
    """Per run, class (lost, possibly_lost, suspect_hang) and kind of evidence the GPU-hours of the
    whole hours of the window, most first; ``text`` names what was seen and what to look at."""
    found = store.rows(statement("015_evidence"), [window.since, window.until, cluster, job])
    rows: list[Row] = [
        {
            **{
                name: row[name] for name in ("cluster", "job", "run_id", "user", "account", "class")
            },
            "evidence": row["evidence"],
            "gpu_hours": nine(Fraction(row["gpu_us"], 3_600_000_000)),
            "since": row["since"],
            "until": row["until"],
            "text": row["text"],
        }
        for row in found
    ]
    total = nine(Fraction(sum(row["gpu_us"] for row in found), 3_600_000_000))
    return TableReport(window, None, rows, {"gpu_hours": total}, [REMARK])
