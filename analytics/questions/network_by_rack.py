"""How crowded each rack's network is, hour by hour."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from analytics.questions import statement
from analytics.window import Window
from collector.store import Store

# Hourly rates need the raw counters, of which a large fleet has many: the last week of a window.
MOST = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class RackHour:
    """One rack over one hour, both directions of its ``nodes`` together. ``rack`` may be None."""

    cluster: str
    rack: str | None
    hour: datetime
    bytes_per_s: float
    nodes: int
    busiest_node: str
    busiest_bytes_per_s: float


def network_by_rack(store: Store, window: Window, cluster: str | None = None) -> list[RackHour]:
    """Every rack and hour of the last week of the window for which traffic is known."""
    since = max(window.since, window.until - MOST)
    rows = store.rows(statement("011_network_by_rack"), [since, window.until, cluster])
    return [RackHour(**row) for row in rows]
