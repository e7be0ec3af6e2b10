"""The GPU jobs of a window as records tell them; what they held and cost is in the cost report."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from analytics.questions import statement
from analytics.window import Window
from collector.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job over all its runs; ``start_at`` None = never started, ``end_at`` None = open."""

    cluster: str
    job_id: str
    name: str | None
    user_name: str | None
    account: str | None
    queue: str | None
    state: str
    gpus: int
    nodes: int | None
    runs: int
    eligible_at: datetime
    start_at: datetime | None
    end_at: datetime | None
    wait_s: float


def jobs(store: Store, window: Window, cluster: str | None = None) -> list[JobRecord]:
    """Every GPU job that waited or ran in the window."""
    rows = store.rows(statement("003_jobs"), [window.since, window.until, cluster])
    return [JobRecord(**row) for row in rows]
