"""The same rows without node and run: what a report by team, user or day sums over.

A year of a large fleet is a hundred million rows by node and run, and a hundredth of that by
holder. Rows of a slice add up to the ledger's own, class by class.
"""

from __future__ import annotations

from datetime import datetime

from analytics.ledger.classes import LedgerClass, Overlay
from collector.store import Work

_AMOUNTS = {
    "ledger_hour": tuple(name.value for name in (*LedgerClass, *Overlay)),
    "ledger_cause": ("gpu_us",),
}
_KEYS = {
    "ledger_hour": "hour, since, until, holder_key, price_key, posting",
    "ledger_cause": "hour, since, until, holder_key, price_key, posting, class, role, rule",
}
BY_HOLDER = {"ledger_hour": "ledger_holder_hour", "ledger_cause": "ledger_holder_cause"}
"""Where the rows of a table are kept by holder."""
# A pool stands for all of its cluster and model, so that rows join like the ledger's own.
_LOWEST = (
    "(SELECT pool_key, min(pool_key) OVER (PARTITION BY cluster, gpu_model) AS lowest "
    "FROM ledger_pool WHERE cluster = ?)"
)


def add_up_by_holder(work: Work, cluster: str, span: tuple[datetime, datetime]) -> None:
    """Bring the hours of a cluster up to date; within the transaction that wrote them."""
    inside = "hour >= ? AND hour < ?"
    for table, amounts in _AMOUNTS.items():
        work.execute(
            f"DELETE FROM {BY_HOLDER[table]} WHERE {inside} AND pool_key IN "  # noqa: S608 - our own names
            "(SELECT pool_key FROM ledger_pool WHERE cluster = ?)",
            [*span, cluster],
        )
        sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in amounts)
        work.execute(
            f"INSERT INTO {BY_HOLDER[table]} BY NAME SELECT {_KEYS[table]}, lowest AS pool_key, "  # noqa: S608 - our own names
            f"{sums} FROM {table} JOIN {_LOWEST} USING (pool_key) WHERE {inside} "
            f"GROUP BY {_KEYS[table]}, lowest ORDER BY hour",
            [cluster, *span],
        )
