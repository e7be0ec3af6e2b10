"""Long work in the store: what began and how it ended, so that a restart can say what was lost."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from collector.store import Work
from scheduler_advisor.running.run import Run, RunState

_NEWEST = """
SELECT run_id, kind, cluster, since, until, min(ts) OVER (PARTITION BY run_id) AS started_at, ts,
  state, error
FROM task_run QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY ts DESC, state <> 'running'
  DESC) = 1
"""


def note(work: Work, run: Run, ts: datetime) -> None:
    """The run is in its state since ``ts``."""
    _append(work, [_row(run.run_id, run.kind, run.cluster, run.window.since, run.window.until,
                        ts, run.state.value, run.error)])  # fmt: skip


def declare_lost(work: Work, ts: datetime) -> list[dict[str, Any]]:
    """At a start: whatever is still called running was cut off; returns those runs."""
    gone = [row for row in work.rows(_NEWEST) if row["state"] == RunState.RUNNING]
    rows = [_row(row["run_id"], row["kind"], row["cluster"], row["since"], row["until"], ts,
                 RunState.LOST.value, "the service ended while it worked: start it again")
            for row in gone]  # fmt: skip
    _append(work, rows)
    return gone


def past_runs(work: Work, limit: int = 64) -> list[dict[str, Any]]:
    """The newest state of each run, the latest begun first."""
    return work.rows(f"{_NEWEST} ORDER BY started_at DESC, run_id LIMIT {int(limit)}")


def last_run(work: Work, kind: str) -> dict[str, Any] | None:
    """The run of that kind that began last, or None."""
    return next((row for row in past_runs(work) if row["kind"] == kind), None)


def _row(*values: object) -> dict[str, Any]:
    names = ("run_id", "kind", "cluster", "since", "until", "ts", "state", "error")
    return dict(zip(names, values, strict=True))


def _append(work: Work, rows: list[dict[str, Any]]) -> None:
    if rows:
        work.append("task_run", {name: [row[name] for row in rows] for name in rows[0]})
