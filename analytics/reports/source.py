"""The rows behind a window: whole hours from the ledger, broken hours at its ends worked out
exactly."""

from __future__ import annotations

from dataclasses import dataclass

from analytics.ledger.compute import compute
from analytics.window import HOUR_US, Window
from collector.store import Work


@dataclass(frozen=True, slots=True)
class Source:
    """Names of row sets with the columns of ``ledger_hour`` and ``ledger_cause``."""

    hours: str
    causes: str


def rows_of(work: Work, window: Window, clusters: list[str]) -> Source:
    """Where the rows of ``window`` are; an hour that it cuts is computed from facts, not
    prorated."""
    edges = _edges(window)
    if not edges:
        return Source("ledger_hour", "ledger_cause")
    for table in ("ledger_hour", "ledger_cause"):
        work.execute(f"DROP TABLE IF EXISTS edge_{table}")
        work.execute(f"CREATE TEMP TABLE edge_{table} AS SELECT * FROM {table} LIMIT 0")  # noqa: S608 - our own names
    for cluster in clusters:
        for since, until in edges:
            computed = compute(work, cluster, since, until)
            work.append("edge_ledger_hour", computed.rows)
            work.append("edge_ledger_cause", computed.causes)
    inner = (-(-window.since_us // HOUR_US) * HOUR_US, window.until_us // HOUR_US * HOUR_US)
    whole = f"hour >= make_timestamp({inner[0]}) AND hour < make_timestamp({inner[1]})"
    return Source(
        *(
            f"(SELECT * FROM {table} WHERE {whole} UNION ALL SELECT * FROM edge_{table})"  # noqa: S608 - our own names
            for table in ("ledger_hour", "ledger_cause")
        )
    )


def _edges(window: Window) -> list[tuple[int, int]]:
    """The parts of the window that are not whole hours."""
    since, until = window.since_us, window.until_us
    first, last = -(-since // HOUR_US) * HOUR_US, until // HOUR_US * HOUR_US
    if first > last:
        return [(since, until)]
    return [(a, b) for a, b in ((since, first), (last, until)) if a < b]
