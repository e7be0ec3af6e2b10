"""Facts that contradict each other, and GPU time without a price."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from analytics.window import Window
from collector.store import Store

_HOUR_US = Decimal(3_600_000_000)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Contradicting facts on one node, and the rule that decided."""

    cluster: str
    node: str
    kind: str
    rule: str
    since: datetime
    until: datetime
    gpu_hours: Decimal
    text: str


@dataclass(frozen=True, slots=True)
class Unpriced:
    """GPU time of a model for which no price was in force."""

    cluster: str
    gpu_model: str
    gpu_hours: Decimal
    since: datetime
    until: datetime


def conflicts(
    store: Store, window: Window, cluster: str | None = None, limit: int = 500
) -> list[Conflict]:
    """The contradictions of the window by node, kind and rule, largest first."""
    rows = store.rows(
        "SELECT cluster, node, kind, rule, min(since) AS since, max(until) AS until,"
        " sum(gpu_us)::BIGINT AS gpu_us, min(text) AS text FROM ledger_conflict"
        " WHERE since < $2 AND until > $1 AND ($3 IS NULL OR cluster = $3)"
        " GROUP BY cluster, node, kind, rule ORDER BY gpu_us DESC, node, kind LIMIT $4",
        [window.since, window.until, cluster, limit],
    )
    return [Conflict(gpu_hours=row.pop("gpu_us") / _HOUR_US, **row) for row in rows]


def unpriced(store: Store, window: Window, cluster: str | None = None) -> list[Unpriced]:
    """Models that were installed without a price in the window, most GPU time first."""
    rows = store.rows(
        "SELECT cluster, gpu_model, min(since) AS since, max(until) AS until,"
        " sum(used + lost + allocated_idle + allocated_unmeasured + failed_held + unattributed"
        " + failed + drained + unknown + reserved + gang_wait + stranded_cpu + stranded_mem"
        " + stranded_shape + stranded_topology + policy_blocked + free)::BIGINT AS gpu_us"
        " FROM ledger_hour JOIN ledger_pool USING (pool_key)"
        " WHERE price_key IS NULL AND since < $2 AND until > $1 AND ($3 IS NULL OR cluster = $3)"
        " GROUP BY cluster, gpu_model ORDER BY gpu_us DESC, gpu_model",
        [window.since, window.until, cluster],
    )
    return [Unpriced(gpu_hours=row.pop("gpu_us") / _HOUR_US, **row) for row in rows]
