"""The rows behind a window: whole hours from the ledger, broken hours at its ends worked out
exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analytics.ledger.byholder import BY_HOLDER
from analytics.ledger.compute import compute
from analytics.window import HOUR_US, Window
from collector.store import Work

BY_RUN_OR_NODE = ("job", "node")
"""Group keys for which rows by holder will not do."""


@dataclass(frozen=True, slots=True)
class Source:
    """Names of row sets with the columns of ``ledger_hour`` and ``ledger_cause``."""

    hours: str
    causes: str


def rows_of(
    work: Work, window: Window, clusters: list[str], by: Sequence[str] = BY_RUN_OR_NODE
) -> Source:
    """Where the rows of ``window`` are; an hour that it cuts is computed from facts, not
    prorated. Rows that need not tell runs or nodes apart (``by``) are read added up."""
    edges = _edges(window)
    tables = ("ledger_hour", "ledger_cause")
    if not set(by) & set(BY_RUN_OR_NODE):
        tables = (BY_HOLDER["ledger_hour"], BY_HOLDER["ledger_cause"])
    if not edges:
        return Source(*tables)
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
            f"(SELECT * FROM {table} WHERE {whole} UNION ALL SELECT * FROM edge_{edge})"  # noqa: S608 - our own names
            for table, edge in zip(tables, ("ledger_hour", "ledger_cause"), strict=True)
        )
    )


def _edges(window: Window) -> list[tuple[int, int]]:
    """The parts of the window that are not whole hours."""
    since, until = window.since_us, window.until_us
    first, last = -(-since // HOUR_US) * HOUR_US, until // HOUR_US * HOUR_US
    if first > last:
        return [(since, until)]
    return [(a, b) for a, b in ((since, first), (last, until)) if a < b]
