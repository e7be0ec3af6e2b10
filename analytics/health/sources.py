"""Where facts came from and over what time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from collector.store import Store


@dataclass(frozen=True, slots=True)
class Source:
    """A source of facts; ``kind`` scheduler | telemetry, ``nodes`` 0 = the whole cluster."""

    cluster: str
    source: str
    kind: str
    nodes: int
    since: datetime
    until: datetime


def sources(store: Store, cluster: str | None = None) -> list[Source]:
    """Every source with the time between its first and last fact; gaps are reported elsewhere."""
    rows = store.rows(
        "SELECT cluster, source, kind, count(DISTINCT node)::INTEGER AS nodes,"
        " min(since) AS since, max(until) AS until FROM fact_window"
        " WHERE $1 IS NULL OR cluster = $1 GROUP BY cluster, source, kind ORDER BY ALL",
        [cluster],
    )
    return [Source(**row) for row in rows]
