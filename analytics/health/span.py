"""From when to when something is known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from collector.store import Store


@dataclass(frozen=True, slots=True)
class FactsSpan:
    """What a store holds; ``ledger_until`` None = nothing is accounted yet."""

    since: datetime
    until: datetime
    clusters: tuple[str, ...]
    ledger_until: datetime | None


def facts_span(store: Store, cluster: str | None = None) -> FactsSpan | None:
    """The span over which facts of any kind are known, or None for an empty store."""
    row = store.rows(
        "SELECT min(since) AS since, max(until) AS until FROM fact_window"
        " WHERE $1 IS NULL OR cluster = $1",
        [cluster],
    )[0]
    if row["since"] is None:
        return None
    built = store.value(
        "SELECT max(hour) + INTERVAL 1 HOUR FROM ledger_build WHERE $1 IS NULL OR cluster = $1",
        [cluster],
    )
    clusters = store.rows("SELECT DISTINCT cluster FROM node ORDER BY cluster")
    return FactsSpan(
        since=row["since"],
        until=row["until"],
        clusters=tuple(entry["cluster"] for entry in clusters),
        ledger_until=built,
    )


def store_kind(store: Store) -> str:
    """``demo`` for made-up facts, ``site`` for real ones."""
    kind = store.value("SELECT value FROM store_info WHERE key = 'kind'")
    return "site" if kind is None else str(kind)
