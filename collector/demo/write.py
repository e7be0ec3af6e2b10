"""The demo into a store that is its own."""

from __future__ import annotations

from collector.demo.fleet import CLUSTER, SINCE, UNTIL
from collector.demo.generate import DemoFacts
from collector.errors import StoreError
from collector.store import Store

_FACT_TABLES = ("node", "job", "job_run", "allocation", "sample")


def holds_demo(store: Store) -> bool:
    """Whether the demo has been written to this store."""
    return bool(store.value("SELECT value FROM store_info WHERE key = 'kind'") == "demo")


def write_demo(store: Store, facts: DemoFacts) -> int:
    """Write every table in one transaction, mark the store as a demo, and count the rows.

    Raises StoreError when the store holds facts already, its own or a site's.
    """
    with store.work() as work:
        for table in _FACT_TABLES:
            if work.value(f'SELECT EXISTS (FROM "{table}")'):
                raise StoreError(
                    f"{store.path} holds facts already (table {table}): the demo wants a file of "
                    "its own, name another one with --db"
                )
        with work.transaction():
            work.append(
                "store_info",
                {
                    "key": ["kind", "demo_cluster", "demo_since", "demo_until"],
                    "value": ["demo", CLUSTER, SINCE.isoformat(), UNTIL.isoformat()],
                },
            )
            return sum(work.append(table, columns) for table, columns in facts.tables.items())
