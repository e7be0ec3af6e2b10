"""Team x day over a year of ledger rows: CPU-seconds and peak memory of the question alone.

Usage: python benchmarks/ledger_year.py [--nodes 125] [--days 365] [--holders 400]
8 rows per node and hour: 1,250 nodes make the 87.6 million rows of 10,000 GPUs. Fewer nodes make a
smaller ledger_hour and the same rows by holder, which is what the report reads: it costs the same.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from analytics.ledger.byholder import add_up_by_holder
from analytics.ledger.classes import LedgerClass, Overlay
from analytics.org import Mapping, load_mappings
from analytics.prices import Price, load_prices
from analytics.reports import cost_report
from analytics.window import EPOCH, Window
from collector.store import Store

T0 = datetime(2025, 1, 1, tzinfo=UTC)
TEAMS = 12
HOUR_US = 3_600_000_000


def fill(store: Store, nodes: int, days: int, holders: int) -> int:
    """Nodes, holders, prices and a year of rows that add up to what is installed."""
    from decimal import Decimal

    with store.work() as work:
        names = [f"n{i:04d}" for i in range(nodes)]
        base = {"cluster": ["big"] * nodes, "node": names, "gpu_model": ["h100"] * nodes}
        work.append(
            "node",
            {
                **base, "gpus": [8] * nodes, "owned": [True] * nodes,
                "valid_from": [EPOCH] * nodes, "source": ["bench"] * nodes,
            },
        )  # fmt: skip
        work.append("ledger_pool", {**base, "pool_key": list(range(1, nodes + 1))})
        work.append(
            "ledger_holder",
            {
                "holder_key": list(range(1, holders + 1)), "cluster": ["big"] * holders,
                "user_name": [f"user{i}" for i in range(holders)],
                "account": [f"account{i % 40}" for i in range(holders)],
                "queue": ["main"] * holders,
            },
        )  # fmt: skip
        teams = [
            Mapping(key_kind="account", key_value=f"account{i}", team=f"team{i % TEAMS}")
            for i in range(40)
        ]
        load_mappings(work, teams, at=T0, actor="bench")
        price = Price(
            gpu_model="h100", amount=Decimal("6.88"), currency="USD", kind="contracted",
            source="bench", effective_from=EPOCH,
        )  # fmt: skip
        load_prices(work, [price], at=T0, actor="bench")
        price_key = work.value("SELECT max(price_key) FROM price WHERE source = 'bench'")
        filled = ("used", "allocated_idle", "free")
        rest = [name.value for name in (*LedgerClass, *Overlay) if name.value not in filled]
        for day in range(days):
            begin = T0 + timedelta(days=day)
            work.execute(
                f"""
INSERT INTO ledger_hour BY NAME
SELECT hour, hour AS since, hour + INTERVAL 1 HOUR AS until, pool_key, {price_key} AS price_key,
  0 AS posting, CASE WHEN slot < 7 THEN 1 + hash(pool_key, slot, hour) % 2000000 END AS run_key,
  CASE WHEN slot < 7 THEN 1 + hash(pool_key, slot, date_trunc('day', hour)) % {holders} END
    AS holder_key, CASE WHEN slot < 7 THEN busy ELSE 0 END AS used,
  CASE WHEN slot < 7 THEN {HOUR_US} - busy ELSE 0 END AS allocated_idle,
  CASE WHEN slot < 7 THEN 0 ELSE {HOUR_US} END AS free,
  {", ".join(f"0 AS {name}" for name in rest)}
FROM (SELECT h AS hour, p AS pool_key, s AS slot, (hash(h, p, s) % {HOUR_US})::BIGINT AS busy
  FROM (SELECT unnest(generate_series(TIMESTAMP '{begin:%Y-%m-%d}',
    TIMESTAMP '{begin:%Y-%m-%d}' + INTERVAL 23 HOUR, INTERVAL 1 HOUR)) AS h),
    range(1, {nodes + 1}) p(p), range(8) s(s))"""
            )
            with work.transaction():
                add_up_by_holder(work, "big", (begin, begin + timedelta(days=1)))
        return int(work.value("SELECT count(*) FROM ledger_hour"))


def ask(path: str, days: int) -> None:
    """In a process of its own, so that its memory is its own."""
    window = Window(T0, T0 + timedelta(days=days))
    with Store.open(Path(path), clock=lambda: T0) as store:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start = time.process_time()
        report = cost_report(store, window, ("team", "day"))
        spent = time.process_time() - start
        assert report.identity.holds, report.identity
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"team x day: {len(report.rows)} rows, {spent:.2f} CPU-s, peak {peak:.0f} MiB "
            f"({before:.0f} MiB before the question)"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, value in (("nodes", 125), ("days", 365), ("holders", 400)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--ask", default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ask is not None:
        ask(args.ask, args.days)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "year.duckdb"
        with Store.open(path, clock=lambda: T0) as store:
            rows = fill(store, args.nodes, args.days, args.holders)
            small = store.value("SELECT count(*) FROM ledger_holder_hour")
        print(f"{rows:,} rows of ledger_hour, {small:,} by holder, {path.stat().st_size >> 20} MiB")
        command = [sys.executable, __file__, "--ask", str(path), "--days", str(args.days)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
