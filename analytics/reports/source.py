"""The rows behind a window: whole days and hours from the ledger, broken hours at its ends worked
out exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from analytics.ledger.byholder import BY_DAY, BY_HOLDER
from analytics.ledger.compute import compute
from analytics.reports.keys import TIME_KEYS
from analytics.window import HOUR_US, Window, to_us
from collector.store import Work

BY_RUN_OR_NODE = ("job", "node")
"""Group keys for which rows by holder will not do."""
WITHIN_A_DAY = ("hour", "hour_of_day")
"""Group keys for which rows by day will not do."""
_TABLES = ("ledger_hour", "ledger_cause")
_DAY_US = 24 * HOUR_US


@dataclass(frozen=True, slots=True)
class Source:
    """Names of row sets with the columns of ``ledger_hour`` and ``ledger_cause``; ``daily``: whole
    UTC days of them are also there as one."""

    hours: str
    causes: str
    daily: bool = False

    def in_days(self, spans: Sequence[tuple[datetime, datetime]]) -> bool:
        """Whether rows of whole days will do for all of them."""
        return self.daily and all(to_us(edge) % _DAY_US == 0 for span in spans for edge in span)

    def over(self, since: datetime, until: datetime) -> Source:
        """The same rows for a question about ``[since, until)`` alone: as few as will do."""
        first = -(-to_us(since) // _DAY_US) * _DAY_US
        last = to_us(until) // _DAY_US * _DAY_US
        if not self.daily or first >= last:
            return Source(self.hours, self.causes)
        if (first, last) == (to_us(since), to_us(until)):
            return Source(BY_DAY["ledger_hour"], BY_DAY["ledger_cause"])
        days = f"hour >= make_timestamp({first}) AND hour < make_timestamp({last})"
        rest = f"hour < make_timestamp({first}) OR hour >= make_timestamp({last})"
        hours, causes = (
            f"(SELECT * FROM {BY_DAY[table]} WHERE {days} "  # noqa: S608 - our own names
            f"UNION ALL SELECT * FROM {rows} AS hours WHERE {rest})"
            for table, rows in zip(_TABLES, (self.hours, self.causes), strict=True)
        )
        return Source(hours, causes)


def rows_of(
    work: Work, window: Window, clusters: list[str], by: Sequence[str] = BY_RUN_OR_NODE
) -> Source:
    """Where the rows of ``window`` are; an hour that it cuts is computed from facts, not
    prorated. Rows that need not tell runs or nodes apart (``by``) are read added up, and days where
    no hours are told apart and the calendar's days are UTC's."""
    edges = _edges(window)
    tables, daily = _TABLES, False
    if not set(by) & set(BY_RUN_OR_NODE):
        tables = (BY_HOLDER["ledger_hour"], BY_HOLDER["ledger_cause"])
        times = set(by) & set(TIME_KEYS)
        daily = not times & set(WITHIN_A_DAY) and (not times or window.time_zone == "UTC")
    if not edges:
        return Source(*tables, daily)
    for table in _TABLES:
        work.execute(f"DROP TABLE IF EXISTS edge_{table}")
        work.execute(f"CREATE TEMP TABLE edge_{table} AS SELECT * FROM {table} LIMIT 0")  # noqa: S608 - our own names
    for cluster in clusters:
        for since, until in edges:
            computed = compute(work, cluster, since, until)
            work.append("edge_ledger_hour", computed.rows)
            work.append("edge_ledger_cause", computed.causes)
    inner = (-(-window.since_us // HOUR_US) * HOUR_US, window.until_us // HOUR_US * HOUR_US)
    whole = f"hour >= make_timestamp({inner[0]}) AND hour < make_timestamp({inner[1]})"
    hours, causes = (
        f"(SELECT * FROM {table} WHERE {whole} UNION ALL SELECT * FROM edge_{edge})"  # noqa: S608 - our own names
        for table, edge in zip(tables, _TABLES, strict=True)
    )
    return Source(hours, causes, daily)


def _edges(window: Window) -> list[tuple[int, int]]:
    """The parts of the window that are not whole hours."""
    since, until = window.since_us, window.until_us
    first, last = -(-since // HOUR_US) * HOUR_US, until // HOUR_US * HOUR_US
    if first > last:
        return [(since, until)]
    return [(a, b) for a, b in ((since, first), (last, until)) if a < b]
