"""Team x day over a year of ledger rows: CPU-seconds and peak memory of questions alone.

Usage: python benchmarks/ledger_year.py [--nodes 1250] [--days 365] [--holders 400] [--keep FILE]
8 rows per node and hour, one of them of a GPU that nobody holds: 1,250 nodes make the 87.6 million
rows of 10,000 GPUs, a file of some gigabytes. Every question is asked by a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from analytics.errors import ReportError
from analytics.ledger.byholder import add_up_by_holder
from analytics.ledger.classes import LedgerClass, Overlay
from analytics.org import Mapping, load_mappings
from analytics.prices import Price, load_prices, seed_shipped
from analytics.reports import cost_report
from analytics.window import EPOCH, Window
from collector.errors import StoreLimitError
from collector.store import Store

T0 = datetime(2025, 1, 1, tzinfo=UTC)
TEAMS = 12
HOUR_US = 3_600_000_000
LIMIT = "2GB"
"""What the store may use beside Python's own objects."""


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
        seed_shipped(work)  # as every build of a ledger does
        price_key = work.value("SELECT max(price_key) FROM price WHERE source = 'bench'")
        for day in range(days):
            begin = T0 + timedelta(days=day)
            with work.transaction():
                work.execute(_hours(begin, nodes, holders, price_key))
                work.execute(_causes(begin))
                add_up_by_holder(work, "big", (begin, begin + timedelta(days=1)))
        return int(work.value("SELECT count(*) FROM ledger_hour"))


def _hours(begin: datetime, nodes: int, holders: int, price_key: int) -> str:
    """A day of rows. Held: mostly used, the rest lost, idle or not measured; one GPU of a node is
    free, stranded, waited for or drained."""
    free = {"free": 5, "stranded_cpu": 7, "gang_wait": 8, "policy_blocked": 9, "drained": 10}
    filled = ("used", "lost", "allocated_idle", "allocated_unmeasured", "possibly_lost",
              "suspect_hang", "stranded_high", "vram_idle", *free)  # fmt: skip
    rest = [name.value for name in (*LedgerClass, *Overlay) if name.value not in filled]
    low, parts = 0, []
    for name, high in free.items():
        parts.append(
            f"CASE WHEN slot = 7 AND dice >= {low} AND dice < {high} THEN {HOUR_US} ELSE 0 END "
            f"AS {name}"
        )
        low = high
    return f"""
INSERT INTO ledger_hour BY NAME
SELECT hour, hour AS since, hour + INTERVAL 1 HOUR AS until, pool_key, {price_key} AS price_key,
  0 AS posting, CASE WHEN slot < 7 THEN 1 + hash(pool_key, slot, hour) % 2000000 END AS run_key,
  CASE WHEN slot < 7 THEN 1 + hash(pool_key, slot, date_trunc('day', hour)) % {holders} END
    AS holder_key,
  CASE WHEN slot < 7 THEN busy - thrown ELSE 0 END AS used,
  CASE WHEN slot < 7 THEN thrown ELSE 0 END AS lost,
  CASE WHEN slot < 7 THEN {HOUR_US} - busy - dark ELSE 0 END AS allocated_idle,
  CASE WHEN slot < 7 THEN dark ELSE 0 END AS allocated_unmeasured,
  CASE WHEN slot < 7 THEN thrown // 2 ELSE 0 END AS possibly_lost,
  CASE WHEN slot < 7 AND dice = 3 THEN busy // 3 ELSE 0 END AS suspect_hang,
  CASE WHEN slot = 7 AND dice = 5 THEN {HOUR_US // 2} ELSE 0 END AS stranded_high,
  CASE WHEN slot < 7 THEN busy // 5 ELSE 0 END AS vram_idle,
  {", ".join(parts)}, {", ".join(f"0 AS {name}" for name in rest)}
FROM (SELECT *, CASE WHEN dice = 0 THEN busy // 4 ELSE 0 END AS thrown,
    CASE WHEN dice = 9 THEN ({HOUR_US} - busy) // 2 ELSE 0 END AS dark
  FROM (SELECT h AS hour, p AS pool_key, s AS slot,
    (hash(h, p, s) % {HOUR_US})::BIGINT AS busy, (hash(s, h, p) % 10)::BIGINT AS dice
    FROM (SELECT unnest(generate_series(TIMESTAMP '{begin:%Y-%m-%d}',
      TIMESTAMP '{begin:%Y-%m-%d}' + INTERVAL 23 HOUR, INTERVAL 1 HOUR)) AS h),
      range(1, {nodes + 1}) p(p), range(8) s(s)))"""


def _causes(begin: datetime) -> str:
    """Who strands or waits: as many rows as there are GPUs that are stranded or waited for."""
    return f"""
INSERT INTO ledger_cause BY NAME
SELECT hour, since, until, pool_key, price_key, posting,
  CASE WHEN stranded_cpu > 0 THEN 'stranded_cpu' WHEN gang_wait > 0 THEN 'gang_wait'
    ELSE 'policy_blocked' END AS class,
  CASE WHEN stranded_cpu > 0 THEN 'causer' ELSE 'waiter' END AS role,
  CASE WHEN stranded_cpu > 0 THEN 'profile' WHEN gang_wait > 0 THEN 'waits' ELSE 'order' END
    AS rule,
  1 + hash(pool_key, hour) % 2000000 AS run_key, 1 + hash(pool_key, since) % 400 AS holder_key,
  stranded_cpu + gang_wait + policy_blocked AS gpu_us
FROM ledger_hour WHERE hour >= TIMESTAMP '{begin:%Y-%m-%d}'
  AND hour < TIMESTAMP '{begin:%Y-%m-%d}' + INTERVAL 1 DAY
  AND stranded_cpu + gang_wait + policy_blocked > 0"""


QUESTIONS = {
    "team x day": ("team", "day"), "user x month": ("user", "month"),
    "team x hour of day": ("team", "hour_of_day"), "node": ("node",), "node x day": ("node", "day"),
    "job x hour": ("job", "hour"),
}  # fmt: skip


def peak_mib() -> int:
    """Of this process alone: what its parent used before does not count."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) >> 10


def ask(path: str, days: int, name: str) -> None:
    """In a process of its own, so that its memory is its own; the first time it also imports what
    nobody needed before."""
    window = Window(T0, T0 + timedelta(days=days))
    with Store.open(Path(path), clock=lambda: T0, memory_limit=LIMIT) as store:
        before, spent = peak_mib(), []
        for _ in range(2 if name == "team x day" else 1):
            start = time.process_time()
            try:
                report = cost_report(store, window, QUESTIONS[name])
            except (ReportError, StoreLimitError) as refused:
                said = f"refused: {refused}"
            else:
                assert report.identity.holds, report.identity
                said = f"{len(report.rows)} rows"
            spent.append(f"{time.process_time() - start:.2f}")
        print(
            f"{name}: {said}, {', again '.join(spent)} CPU-s, peak {peak_mib()} MiB "
            f"({before} MiB before the question)",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    for option, value in (("nodes", 1250), ("days", 365), ("holders", 400)):
        parser.add_argument(f"--{option}", type=int, default=value)
    parser.add_argument("--keep", type=Path, default=None, help="the file to make, or to ask again")
    parser.add_argument("--ask", default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ask is not None:
        ask(str(args.keep), args.days, args.ask)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = args.keep or Path(folder) / "year.duckdb"
        made = not path.exists()
        with Store.open(path, clock=lambda: T0) as store:
            if made:
                fill(store, args.nodes, args.days, args.holders)
            rows = [
                store.value(f"SELECT count(*) FROM {table}")
                for table in ("ledger_hour", "ledger_holder_hour", "ledger_holder_day")
            ]
        size = path.stat().st_size >> 20
        print("{:,} rows of ledger_hour, {:,} by holder and hour, {:,} by day".format(*rows))
        print(f"{size} MiB", flush=True)
        for name in QUESTIONS:
            command = [sys.executable, __file__, "--ask", name, "--keep", str(path)]
            subprocess.run([*command, "--days", str(args.days)], check=True)


if __name__ == "__main__":
    main()
