"""CPU-seconds of a ledger of a made-up fleet, against one SELECT over all its input columns.

Usage: python benchmarks/ledger_build.py [--nodes 1250] [--days 1] [--step 60]
           [--jobs-per-day 15000]
Prints rows, CPU-seconds of build and re-check, peak memory, and the ratio to the SELECT: for the
first build of the process, and for the best of three builds against the best of three SELECTs.
Every build finds no rows of the ledger, as on the day itself.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import numpy as np
from made_up_fleet import GPUS, HOUR, T0, make_jobs, schedule, write_fleet, write_samples

from analytics.ledger import build, ensure_built
from analytics.reports import cost_report
from analytics.window import Window
from collector.store import Store

ROUNDS = 3
BUILT = (
    *("ledger_hour", "ledger_cause", "ledger_conflict", "ledger_build", "ledger_evidence"),
    *("ledger_holder_hour", "ledger_holder_cause", "ledger_holder_day", "ledger_holder_day_cause"),
    *("ledger_run", "ledger_holder", "ledger_pool"),
    *("fragmentation_hour", "activity_hour", "idle_memory_hour"),
)
# Every column that a build reads, of every table that has rows in it.
SELECT = """
SELECT
 (SELECT sum(length(cluster)) + sum(length(node)) + sum(length(gpu_uuid)) + sum(gpu_index)
   + sum(length(mig_uuid)) + sum(length(run_id)) + sum(epoch_us(ts)) + sum(step_s) + sum(util_ratio)
   + sum(sm_active_ratio) + sum(power_mw) + sum(mem_used_mib) + sum(mem_total_mib) + sum(processes)
   + sum(nvlink_tx_bytes) + sum(nvlink_rx_bytes) + sum(pcie_tx_bytes) + sum(pcie_rx_bytes)
  FROM sample),
 (SELECT sum(length(run_id)) + sum(length(node)) + sum(gpus) + sum(cpus) + sum(mem_mib)
   + sum(epoch_us(start_at)) + sum(epoch_us(end_at)) FROM allocation),
 (SELECT sum(length(run_id)) + sum(length(account)) + sum(length(user_name)) + sum(length(state))
   + sum(epoch_us(eligible_at)) + sum(epoch_us(start_at)) + sum(epoch_us(end_at)) + sum(limit_s)
  FROM job_run),
 (SELECT sum(length(job_id)) + sum(req_gpus) + sum(req_nodes) + sum(req_cpus) FROM job)"""


def cpu() -> float:
    return time.process_time()


def _timed(work: Callable[[], object]) -> float:
    start = cpu()
    work()
    return cpu() - start


def forget(store: Store) -> None:
    """No row of the ledger is left, as if the window had never been built."""
    with store.work() as work:
        for table in BUILT:
            work.execute(f"DELETE FROM {table}")


def made(store: Store, args: argparse.Namespace) -> None:
    rng = np.random.default_rng(7)
    until = args.days * 24 * HOUR
    fleet = schedule(make_jobs(rng, args.nodes, args.days, args.jobs_per_day), args.nodes, until)
    with store.work() as work:
        runs = write_fleet(work, fleet, until)
        samples = write_samples(work, fleet, args.days, args.step)
    print(f"{args.nodes * GPUS} GPUs, {args.days} days, {runs} jobs, {samples} samples")


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, value in (("nodes", 1250), ("days", 1), ("step", 60), ("jobs-per-day", 15000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    window = Window(T0, T0 + timedelta(days=args.days))
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "bench.duckdb", clock=lambda: T0)
        made(store, args)
        # The compiled loops are made once per installation; they are not what is measured here.
        build(store, "bench", Window(T0, T0 + timedelta(hours=1)))
        # Neither side is the one that brings the file's blocks into memory.
        store.query(SELECT)
        builds, selects, rows = [], [], 0
        for _ in range(ROUNDS):
            forget(store)
            start = cpu()
            rows = build(store, "bench", window)
            builds.append(cpu() - start)
            selects.append(_timed(lambda: store.query(SELECT)))
        first, built, select = builds[0], min(builds), min(selects)
        start = cpu()
        again = ensure_built(store, window)
        checked = cpu() - start
        start = cpu()
        report = cost_report(store, window, ("team", "day"))
        asked = cpu() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        assert report.identity.holds, report.identity
        print(f"build: {rows} rows, {built:.2f} CPU-s ({built / args.days:.2f} a day)")
        print(f"SELECT over the input columns: {select:.2f} CPU-s, ratio {built / select:.1f}")
        print(f"first build of the process: {first:.2f} CPU-s, ratio {first / select:.1f}")
        print(f"re-check: {again} hours stale, {checked:.2f} CPU-s")
        print(f"team x day: {len(report.rows)} rows, {asked:.2f} CPU-s; peak {peak:.0f} MiB")
        store.close()


if __name__ == "__main__":
    main()
