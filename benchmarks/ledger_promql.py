"""GPU-hours used by team and day: the ledger and PromQL on a real Prometheus, side by side.

Usage: python benchmarks/ledger_promql.py [--nodes 125] [--days 7] [--record FILE.json]
Both hold the same use of 8 GPUs per node, Prometheus a sample a minute and GPU. Needs `prometheus`
and `promtool` on the path; listens on loopback only. Prints CPU-seconds of the question on each
side, asked for the first time and again, and checks that the answers are the same. Each side
answers from a process of its own that has just opened its files. Neither side's start, nor
bringing the data in, is counted; a whole report is made on our side, with costs and identity.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from datetime import date, timedelta
from pathlib import Path

from ledger_year import T0, TEAMS, fill

from analytics.reports import cost_report
from analytics.window import Window
from collector.store import Store

ACCOUNTS = 40
TIMES = 4

Answers = dict[tuple[str, int], float]
"""GPU-hours of a team on a day."""


def export(store: Store, day: int, path: Path) -> None:
    """One day of samples as OpenMetrics text, minute by minute."""
    begin = T0 + timedelta(days=day)
    with store.work() as work:
        work.execute(
            f"""
COPY (SELECT 'gpu_util_ratio{{gpu="' || pool_key || '-' || slot || '",team="team'
    || ((holder_key - 1) % {ACCOUNTS}) % {TEAMS} || '"}} ' || used / 3.6e9 || ' '
    || epoch(since)::BIGINT + 60 * m - 30
  FROM (SELECT *, row_number() OVER gpu AS slot FROM ledger_hour
      WHERE hour >= TIMESTAMP '{begin:%Y-%m-%d}'
        AND hour < TIMESTAMP '{begin:%Y-%m-%d}' + INTERVAL 1 DAY AND run_key IS NOT NULL
      WINDOW gpu AS (PARTITION BY pool_key, hour ORDER BY holder_key, run_key)),
    range(1, 61) r(m)
  ORDER BY since, m)
TO '{path}' (FORMAT csv, HEADER false, QUOTE '', DELIMITER '\x01')"""
        )
    text = path.read_text()
    path.write_text("# TYPE gpu_util_ratio gauge\n" + text + "# EOF\n")


def load(store: Store, days: int, folder: Path) -> None:
    for day in range(days):
        text = folder / "day.txt"
        export(store, day, text)
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", text, folder / "data"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        text.unlink()


def cpu_of(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def serve(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    config = folder / "prometheus.yml"
    config.write_text("scrape_configs: []\n")
    process = subprocess.Popen(
        [
            "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}", "--storage.tsdb.retention.time=100y",
            "--query.max-samples=200000000", "--query.timeout=10m",
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://{address}/-/ready", timeout=5).read()
        except OSError:
            time.sleep(0.5)
        else:
            return process, address
    process.terminate()
    raise SystemExit("prometheus did not become ready")


def ask(address: str, days: int) -> Answers:
    """GPU-hours per team and day: a sample a minute is a sixtieth of an hour."""
    query = {
        "query": "sum by (team) (sum_over_time(gpu_util_ratio[1d])) / 60",
        "start": int((T0 + timedelta(days=1)).timestamp()),
        "end": int((T0 + timedelta(days=days)).timestamp()),
        "step": 86_400,
    }
    url = f"http://{address}/api/v1/query_range?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=600) as answer:
        series = json.load(answer)["data"]["result"]
    start = int(T0.timestamp())
    return {
        (one["metric"]["team"], (int(at) - start) // 86_400 - 1): float(value)
        for one in series
        for at, value in one["values"]
    }


def asked_here(path: Path, days: int) -> None:
    """The ledger's answers, and what each time of asking cost this process, as JSON."""
    window = Window(T0, T0 + timedelta(days=days))
    spent = []
    with Store.open(path, clock=lambda: T0, create=False) as store:
        for _ in range(TIMES):
            start = time.process_time()
            report = cost_report(store, window, ("team", "day"))
            spent.append(time.process_time() - start)
    assert report.identity.holds, report.identity
    found = [
        (row["team"], row["day"], float(row["used_gpu_hours"]))
        for row in report.rows
        if row["team"] is not None
    ]
    print(json.dumps({"found": found, "spent": spent}))


def asked_ledger(path: Path, days: int) -> tuple[Answers, list[float]]:
    """The same from a process that has just opened the file."""
    command = [sys.executable, __file__, "--ask", str(path), "--days", str(days)]
    said = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    start = T0.date()
    found = {
        (team, (date.fromisoformat(day) - start).days): used for team, day, used in said["found"]
    }
    return found, said["spent"]


def asked_prometheus(folder: Path, days: int) -> tuple[Answers, list[float]]:
    """The answers of a Prometheus of its own, and what each time of asking cost it."""
    process, address = serve(folder)
    spent = []
    try:
        for _ in range(TIMES):
            before = cpu_of(process.pid)
            theirs = ask(address, days)
            spent.append(cpu_of(process.pid) - before)
    finally:
        process.terminate()
        process.wait()
    return theirs, spent


def compared(
    ours: tuple[Answers, list[float]], theirs: tuple[Answers, list[float]]
) -> dict[str, object]:
    """What both sides spent, once it is sure that they say the same."""
    mine, yours = ours[0], theirs[0]
    assert mine.keys() == yours.keys()
    worst = max(abs(mine[key] - yours[key]) for key in mine)
    assert worst < 0.01, worst
    figures: dict[str, object] = {"answers": len(mine), "largest_difference_gpu_hours": worst}
    for name, times in (("first", slice(0, 1)), ("again, best", slice(1, None))):
        mine_s, theirs_s = min(ours[1][times]), min(theirs[1][times])
        figures[name] = {
            "ledger_cpu_s": round(mine_s, 4), "promql_cpu_s": round(theirs_s, 2),
            "ratio": round(theirs_s / mine_s, 1),
        }  # fmt: skip
        print(
            f"{name}: ledger {mine_s:.4f} CPU-s, PromQL {theirs_s:.2f} CPU-s, "
            f"ratio {theirs_s / mine_s:.1f}"
        )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, value in (("nodes", 125), ("days", 7)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--record", type=Path, help="write the figures to this file")
    parser.add_argument("--ask", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ask is not None:
        asked_here(args.ask, args.days)
        return
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        raise SystemExit("needs prometheus and promtool on the path")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "ledger.duckdb"
        with Store.open(path, clock=lambda: T0) as store:
            fill(store, args.nodes, args.days, 400)
            load(store, args.days, folder)
        gpus = args.nodes * 8
        print(f"{gpus} GPUs x {args.days} days at 60 s")
        figures = compared(asked_ledger(path, args.days), asked_prometheus(folder, args.days))
    if args.record is not None:
        record = {"gpus": gpus, "days": args.days, **figures}
        args.record.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
