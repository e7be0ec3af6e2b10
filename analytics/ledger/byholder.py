"""The same rows without node and run, by hour and by day: what a report by team, user or day sums
over.

A year of a large fleet is a hundred million rows by node and run, a twentieth of that by holder
and a five hundredth by holder and day. Rows of a slice add up to the ledger's own, class by class.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from analytics.ledger.classes import LedgerClass, Overlay
from collector.store import Work

_AMOUNTS = {
    "ledger_hour": tuple(name.value for name in (*LedgerClass, *Overlay)),
    "ledger_cause": ("gpu_us",),
}
_KEYS = {
    "ledger_hour": "holder_key, price_key, posting",
    "ledger_cause": "holder_key, price_key, posting, class, role, rule",
}
BY_HOLDER = {"ledger_hour": "ledger_holder_hour", "ledger_cause": "ledger_holder_cause"}
"""Where the rows of a table are kept by holder."""
BY_DAY = {"ledger_hour": "ledger_holder_day", "ledger_cause": "ledger_holder_day_cause"}
"""Where they are kept by holder and UTC day; `hour` is the day's first one."""
# A pool stands for all of its cluster and model, so that rows join like the ledger's own.
_LOWEST = (
    "(SELECT pool_key, min(pool_key) OVER (PARTITION BY cluster, gpu_model) AS lowest "
    "FROM ledger_pool WHERE cluster = ?)"
)
_INSIDE = "hour >= ? AND hour < ?"
_MINE = f"{_INSIDE} AND pool_key IN (SELECT pool_key FROM ledger_pool WHERE cluster = ?)"  # noqa: S608 - our own names
_SLICE = "hour, since, until"
_DAY = (
    "date_trunc('day', rows.hour) AS hour, date_trunc('day', rows.hour) AS since, "
    "date_trunc('day', rows.hour) + INTERVAL 1 DAY AS until"
)


def add_up_by_holder(work: Work, cluster: str, span: tuple[datetime, datetime]) -> None:
    """Bring the hours of a cluster and their days up to date; within the transaction that wrote
    them."""
    first = span[0].replace(hour=0, minute=0, second=0, microsecond=0)
    last = span[1] - timedelta(microseconds=1)
    days = (first, last.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1))
    for table, amounts in _AMOUNTS.items():
        keys, hours, daily = _KEYS[table], BY_HOLDER[table], BY_DAY[table]
        sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in amounts)
        work.execute(f"DELETE FROM {hours} WHERE {_MINE}", [*span, cluster])  # noqa: S608 - our own names
        work.execute(
            f"INSERT INTO {hours} BY NAME SELECT {_SLICE}, {keys}, lowest AS pool_key, {sums} "  # noqa: S608 - our own names
            f"FROM {table} JOIN {_LOWEST} USING (pool_key) WHERE {_INSIDE} "
            f"GROUP BY {_SLICE}, {keys}, lowest ORDER BY hour",
            [cluster, *span],
        )
        work.execute(f"DELETE FROM {daily} WHERE {_MINE}", [*days, cluster])  # noqa: S608 - our own names
        work.execute(
            f"INSERT INTO {daily} BY NAME SELECT {_DAY}, {keys}, pool_key, {sums} "  # noqa: S608 - our own names
            f"FROM {hours} AS rows WHERE {_MINE} GROUP BY ALL ORDER BY hour",
            [*days, cluster],
        )
