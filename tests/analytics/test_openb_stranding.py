"""Stranding on a real trace, against a plain loop that shares nothing with the ledger."""

from __future__ import annotations

import csv
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from analytics.ledger import build
from analytics.ledger.settings import put_setting
from analytics.reports import ledger_report
from analytics.window import EPOCH, Window
from collector.store import Store

T0 = datetime(2023, 1, 1, tzinfo=UTC)
CPU_PER_GPU, MEM_PER_GPU = 8_000, 30_000


def rows_of(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def placed(pods, nodes):
    """Whole-GPU pods of the trace put on the first node with room, at their own times."""
    free_at = defaultdict(list)
    result = []
    for pod in sorted(pods, key=lambda p: int(p["scheduled_time"])):
        start, end = int(pod["scheduled_time"]), int(pod["deletion_time"])
        for node in nodes:
            live = [x for x in free_at[node["sn"]] if x[1] > start]
            free_at[node["sn"]] = live
            room = (
                int(node["gpu"]) - sum(x[2] for x in live),
                int(node["cpu_milli"]) // 1000 - sum(x[3] for x in live),
                int(node["memory_mib"]) - sum(x[4] for x in live),
            )
            need = (int(pod["num_gpu"]), -(-int(pod["cpu_milli"]) // 1000), int(pod["memory_mib"]))
            if all(r >= n for r, n in zip(room, need, strict=True)):
                row = (start, end, *need, node["sn"])
                free_at[node["sn"]].append(row)
                result.append((pod["name"], row))
                break
    return result


def by_hand(placements, nodes, until):
    """GPU-seconds that are held, and free ones that CPU or memory cannot serve, node by node."""
    totals = defaultdict(int)
    for node in nodes:
        mine = [row for _, row in placements if row[5] == node["sn"]]
        cuts = sorted({0, until, *(t for row in mine for t in row[:2] if 0 < t < until)})
        gpus, cpus, mem = int(node["gpu"]), int(node["cpu_milli"]), int(node["memory_mib"])
        for a, b in pairwise(cuts):
            live = [row for row in mine if row[0] <= a < row[1]]
            held = sum(row[2] for row in live)
            free = gpus - held
            by_cpu = (cpus // 1000 * 1000 - 1000 * sum(row[3] for row in live)) // CPU_PER_GPU
            by_mem = (mem - sum(row[4] for row in live)) // MEM_PER_GPU
            usable = min(free, max(by_cpu, 0), max(by_mem, 0))
            totals["held"] += held * (b - a)
            name = "stranded_cpu" if by_cpu <= by_mem else "stranded_mem"
            totals[name] += (free - usable) * (b - a)
            totals["free"] += usable * (b - a)
    return {name: amount for name, amount in totals.items() if amount}


@pytest.mark.slow
def test_held_and_stranded_time_on_openb_nodes_equal_a_plain_loop(shared_data, store):
    folder = shared_data / "traces" / "openb"
    nodes = rows_of(folder / "openb_node_list_gpu_node.csv")[::12]
    pods = [
        row
        for row in rows_of(folder / "openb_pod_list_default.csv")
        if row["scheduled_time"] and row["gpu_milli"] == "1000" and int(row["num_gpu"]) > 0
        and int(row["deletion_time"]) > int(row["scheduled_time"])
    ]  # fmt: skip
    placements = placed(pods, nodes)
    days = 150
    write(store, nodes, placements, days)
    window = Window(T0, T0 + timedelta(days=days))
    build(store, "openb", window)
    report = ledger_report(store, window)
    assert report.identity.holds
    hours = {row["class"]: row["gpu_hours"] for row in report.rows if row["gpu_hours"]}
    hours["held"] = hours.pop("allocated_unmeasured")
    seconds = {name: round(amount * 3600) for name, amount in hours.items()}
    assert seconds == by_hand(placements, nodes, days * 86_400)
    assert len(placements) > 1_000


def write(store: Store, nodes, placements, days) -> None:
    def at(seconds):
        return T0 + timedelta(seconds=seconds)

    with store.work() as work:
        n, m = len(nodes), len(placements)
        work.append(
            "node",
            {
                "cluster": ["openb"] * n,
                "node": [row["sn"] for row in nodes],
                "gpu_model": [row["model"] for row in nodes],
                "gpus": [int(row["gpu"]) for row in nodes],
                "cpus": [int(row["cpu_milli"]) // 1000 for row in nodes],
                "mem_mib": [int(row["memory_mib"]) for row in nodes],
                "owned": [True] * n,
                "valid_from": [T0] * n,
                "source": ["test"] * n,
            },
        )
        spans = {
            "start_at": [at(r[0]) for _, r in placements],
            "end_at": [at(r[1]) for _, r in placements],
        }
        names = [name for name, _ in placements]
        both = {"cluster": ["openb"] * m, "run_id": names, "source": ["test"] * m, **spans}
        work.append(
            "allocation",
            {
                **both,
                "node": [r[5] for _, r in placements],
                "gpus": [r[2] for _, r in placements],
                "cpus": [r[3] for _, r in placements],
                "mem_mib": [r[4] for _, r in placements],
                "share_num": [1] * m,
                "share_den": [1] * m,
            },
        )
        work.append(
            "job_run",
            {
                **both,
                "job_id": names,
                "attempt": [1] * m,
                "submit_at": spans["start_at"],
                "state": ["COMPLETED"] * m,
            },
        )
        kinds = {"cluster": ["openb"], "kind": ["scheduler"], "source": ["test"]}
        work.append("fact_window", {**kinds, "since": [T0], "until": [at(days * 86_400)]})
        put_setting(work, "demand_cpu_milli_per_gpu", CPU_PER_GPU, since=EPOCH, actor="test")
        put_setting(work, "demand_mem_mib_per_gpu", MEM_PER_GPU, since=EPOCH, actor="test")
