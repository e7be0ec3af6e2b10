"""CPU-seconds to build the ledger of a made-up fleet, against one SELECT over its input columns.

Usage: python benchmarks/ledger_build.py [--nodes 125] [--days 28] [--step 60] [--jobs-per-day 1500]
Prints rows, CPU-seconds of import, build and re-check, peak memory, and the ratio to the SELECT.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from analytics.ledger import build, ensure_built
from analytics.reports import cost_report
from analytics.window import Window
from collector.store import Store, Work

T0 = datetime(2026, 10, 5, tzinfo=UTC)
GPUS = 8
HOUR = 3_600_000_000


def stamps(us: np.ndarray) -> pa.Array:
    origin = int(T0.timestamp() * 1e6)
    return pa.array(us + origin, pa.timestamp("us"))


def make_runs(rng: np.random.Generator, nodes: int, days: int, per_day: int) -> np.ndarray:
    """Rows (start, end, node, gpus): every node is filled GPU by GPU, with gaps between runs."""
    rows = []
    mean_us = nodes * GPUS * 24 * HOUR / per_day
    for node in range(nodes):
        free_at = rng.exponential(mean_us / 8, GPUS)
        horizon = days * 24 * HOUR
        while free_at.min() < horizon:
            gpus = int(rng.choice([1, 1, 1, 2, 4, 8]))
            places = np.argsort(free_at)[:gpus]
            start = float(free_at[places].max() + rng.exponential(mean_us / 30))
            end = start + rng.lognormal(np.log(mean_us / gpus), 1.0)
            free_at[places] = end
            if start < horizon:
                rows.append((int(start), int(end), node, gpus))
    return np.array(rows, np.int64)


def write_runs(work: Work, runs: np.ndarray, nodes: int, waits: np.ndarray) -> None:
    n = runs.shape[0]
    names = [f"r{i:07d}" for i in range(n)]
    text = {"cluster": ["bench"] * n, "run_id": names, "source": ["bench"] * n}
    cpus = runs[:, 3] * 8
    work.append(
        "job_run",
        {
            **text,
            "job_id": names,
            "attempt": np.ones(n, np.int32),
            "account": [f"team{i % 12}" for i in range(n)],
            "user_name": [f"user{i % 90}" for i in range(n)],
            "submit_at": stamps(runs[:, 0] - waits),
            "eligible_at": stamps(runs[:, 0] - waits),
            "start_at": stamps(runs[:, 0]),
            "end_at": stamps(runs[:, 1]),
            "state": ["COMPLETED"] * n,
            "gpus": runs[:, 3],
            "nodes": np.ones(n, np.int32),
            "cpus": cpus,
            "mem_mib": runs[:, 3] * 65536,
            "limit_s": np.full(n, 86400),
        },
    )
    work.append(
        "allocation",
        {
            **text,
            "node": [f"n{i:04d}" for i in runs[:, 2]],
            "gpus": runs[:, 3],
            "share_num": np.ones(n, np.int32),
            "share_den": np.ones(n, np.int32),
            "cpus": cpus,
            "mem_mib": runs[:, 3] * 65536,
            "start_at": stamps(runs[:, 0]),
            "end_at": stamps(runs[:, 1]),
        },
    )
    size = [f"n{i:04d}" for i in range(nodes)]
    work.append(
        "node",
        {
            "cluster": ["bench"] * nodes,
            "node": size,
            "gpu_model": ["h100"] * nodes,
            "gpus": [GPUS] * nodes,
            "cpus": [96] * nodes,
            "mem_mib": [1_048_576] * nodes,
            "owned": [True] * nodes,
            "valid_from": [T0] * nodes,
            "source": ["bench"] * nodes,
        },
    )


def write_samples(work: Work, days: int, step_s: int) -> int:
    """One sample per GPU and step, tagged with the run that holds it, made inside the store."""
    work.execute(
        f"""
INSERT INTO sample (cluster, node, gpu_uuid, run_id, ts, step_s, util_ratio, power_mw, source)
SELECT 'bench', a.node, a.node || '-' || a.run_id || '-' || g.g, a.run_id, t.ts, {step_s},
  (hash(a.run_id, t.ts, g.g) % 101) / 100.0, 400000, 'bench'
FROM allocation a, range(a.gpus) g(g),
  unnest(generate_series(
    time_bucket(INTERVAL {step_s} SECOND, a.start_at + INTERVAL {step_s} SECOND),
    least(a.end_at, TIMESTAMP '{T0:%Y-%m-%d}' + INTERVAL {days} DAY),
    INTERVAL {step_s} SECOND)) t(ts)
ORDER BY t.ts"""
    )
    return int(work.value("SELECT count(*) FROM sample"))


def cpu() -> float:
    return time.process_time()


def main() -> None:  # noqa: PLR0915 - one measurement after the other
    parser = argparse.ArgumentParser()
    for name, value in (("nodes", 125), ("days", 28), ("step", 60), ("jobs-per-day", 1500)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    rng = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "bench.duckdb", clock=lambda: T0)
        runs = make_runs(rng, args.nodes, args.days, args.jobs_per_day)
        waits = (rng.exponential(1800, runs.shape[0]) * 1e6).astype(np.int64)
        window = Window(T0, T0 + timedelta(days=args.days))
        with store.work() as work:
            write_runs(work, runs, args.nodes, waits)
            kinds = {"cluster": ["bench"], "kind": ["scheduler"], "source": ["bench"]}
            work.append("fact_window", {**kinds, "since": [window.since], "until": [window.until]})
            samples = write_samples(work, args.days, args.step)
        print(
            f"{args.nodes * GPUS} GPUs, {args.days} days, {runs.shape[0]} runs, {samples} samples"
        )
        # The compiled loops are made once per installation; they are not what is measured here.
        build(store, "bench", Window(T0, T0 + timedelta(hours=1)))
        start = cpu()
        rows = build(store, "bench", window)
        built = cpu() - start
        start = cpu()
        store.query(
            "SELECT sum(epoch_us(ts)), sum(step_s), sum(util_ratio), sum(length(node)), "
            "sum(length(gpu_uuid)), sum(length(run_id)), count(gpu_index), count(mig_uuid) "
            "FROM sample"
        )
        select = cpu() - start
        start = cpu()
        again = ensure_built(store, window)
        checked = cpu() - start
        start = cpu()
        report = cost_report(store, window, ("team", "day"))
        asked = cpu() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        assert report.identity.holds, report.identity
        print(f"build: {rows} rows, {built:.1f} CPU-s ({built / args.days:.2f} a day)")
        print(f"SELECT over the sample columns: {select:.1f} CPU-s, ratio {built / select:.1f}")
        print(f"re-check: {again} hours stale, {checked:.2f} CPU-s")
        print(f"team x day: {len(report.rows)} rows, {asked:.2f} CPU-s; peak {peak:.0f} MiB")
        store.close()


if __name__ == "__main__":
    main()
