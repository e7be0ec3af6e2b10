"""Stranding on a real trace, taken in by the importer, against a plain loop over its files that
shares nothing with the ledger."""

from __future__ import annotations

import csv
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest

from analytics.ledger import build
from analytics.reports import ledger_report
from analytics.window import Window
from collector.traces.importer import import_trace

ORIGIN = datetime(2020, 1, 1, tzinfo=UTC)
DAY = 86_400
PASS_S = 60
HISTORY_DAYS, LEAST_JOBS = 28, 20


@dataclass(frozen=True)
class Pod:
    number: int
    created: int
    start: int | None
    end: int
    gpus: int
    milli: int
    cpu: int
    mem: int
    models: frozenset[str]
    node: int | None
    devices: tuple[str, ...]


def rows_of(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def pods_of(rows, held, nodes):
    """Pods that want GPUs; where they were put is all that the importer adds to the file."""
    place = {row["sn"]: i for i, row in enumerate(nodes)}
    for nth, row in enumerate(rows):
        there = held.get(f"{row['name']}.1", [])
        yield Pod(
            nth, int(row["creation_time"]),
            int(row["scheduled_time"]) if row["scheduled_time"] else None,
            int(row["deletion_time"]), int(row["num_gpu"]), int(row["gpu_milli"]),
            (int(row["cpu_milli"]) + 500) // 1000 * 1000, int(row["memory_mib"]),
            frozenset(row["gpu_spec"].split("|")) if row["gpu_spec"] else frozenset(),
            place[there[0][0]] if there else None, tuple(gpu for _, gpu in there if gpu),
        )  # fmt: skip


class Cluster:
    """What is free on every node, by plain counting."""

    def __init__(self, nodes, pods):
        self.gpus = np.array([int(row["gpu"]) for row in nodes])
        self.cpu = np.array([int(row["cpu_milli"]) // 1000 * 1000 for row in nodes])
        self.mem = np.array([int(row["memory_mib"]) for row in nodes])
        self.models = np.array([row["model"] for row in nodes])
        self.name_order = np.argsort(np.array([row["sn"] for row in nodes])).argsort()
        self.cpu_used, self.mem_used = np.zeros_like(self.cpu), np.zeros_like(self.mem)
        self.on = defaultdict(dict)  # device -> pod -> thousandths
        self.touched = np.zeros_like(self.gpus)
        self.shares = 0
        self.pods = pods
        self.fits_since = {}

    def move(self, pod, sign):
        self.cpu_used[pod.node] += sign * pod.cpu
        self.mem_used[pod.node] += sign * pod.mem
        for device in pod.devices:
            amount = pod.milli if pod.gpus == 1 else 1000
            before = len(self.on[device])
            if sign > 0:
                self.on[device][pod.number] = amount
            else:
                del self.on[device][pod.number]
            self.shares += sign * amount
            self.touched[pod.node] += (len(self.on[device]) > 0) - (before > 0)

    def demand(self, day):
        """CPU and memory per GPU at the 25th percentile of the last 28 days' pods."""
        since, until = (day - HISTORY_DAYS) * DAY, day * DAY
        mine = [p for p in self.pods if p.gpus and p.start is not None and since <= p.start < until]
        if len(mine) < LEAST_JOBS:
            return None
        rank = max(-(-len(mine) // 4) - 1, 0)
        return (
            sorted(p.cpu // p.gpus for p in mine)[rank],
            sorted(p.mem // p.gpus for p in mine)[rank],
        )

    def usable(self, demand):
        free = self.gpus - self.touched
        per_cpu, per_mem = demand or (self.cpu // self.gpus, self.mem // self.gpus)
        by_cpu = np.maximum(self.cpu - self.cpu_used, 0) // np.maximum(per_cpu, 1)
        by_mem = np.maximum(self.mem - self.mem_used, 0) // np.maximum(per_mem, 1)
        by_cpu = np.where(np.asarray(per_cpu) == 0, 10**9, by_cpu)
        by_mem = np.where(np.asarray(per_mem) == 0, 10**9, by_mem)
        return free, np.minimum(free, np.minimum(by_cpu, by_mem)), by_cpu <= by_mem

    def allowed(self, pod):
        return np.isin(self.models, list(pod.models)) if pod.models else self.gpus > 0

    def verdict(self, pod, left, there):
        if int(left[there].sum()) < pod.gpus:
            return "gang_wait"
        enough = there & (left >= pod.gpus)
        cpu = self.cpu - self.cpu_used >= pod.cpu
        mem = self.mem - self.mem_used >= pod.mem
        if (enough & cpu & mem).any():
            return "policy_blocked"
        if (enough & mem).any():
            return "stranded_cpu"
        if (enough & cpu).any():
            return "stranded_mem"
        return "stranded_cpu" if enough.any() else "stranded_shape"

    def walk(self, now, queue, free, usable):
        """(class, GPUs, instant from which it counts) of every claim of the queue."""
        left, order = usable.copy(), np.lexsort((self.name_order, free))
        fits, claims = {}, []
        for pod in queue:
            there = self.allowed(pod)
            could = there & (self.gpus >= pod.gpus) & (self.cpu >= pod.cpu) & (self.mem >= pod.mem)
            if not could.any() or not left[there].any():
                continue
            name = self.verdict(pod, left, there)
            since = now
            if name == "policy_blocked":
                fits[pod.number] = self.fits_since.get(pod.number, now)
                since = fits[pod.number] + PASS_S
            need = pod.gpus
            for node in order[there[order] & (left[order] > 0)]:
                take = min(need, int(left[node]))
                left[node] -= take
                need -= take
                if not need:
                    break
            claims.append((name, pod.gpus - need, since))
        self.fits_since = fits
        return claims


def by_hand(nodes, pods, since, until):  # noqa: C901 - one loop, so that it can be read
    """GPU-seconds x 1000 per class over ``[since, until)``, from the first second on."""
    cluster, totals = Cluster(nodes, pods), defaultdict(int)
    starts, ends, joins, leaves = (defaultdict(list) for _ in range(4))
    for pod in pods:
        if pod.node is not None and pod.end > pod.start:
            starts[pod.start].append(pod)
            ends[pod.end].append(pod)
        gone = pod.end if pod.start is None else pod.start
        if pod.gpus and gone > pod.created:
            joins[pod.created].append(pod)
            leaves[gone].append(pod)
    times = {0, since, until, *range(0, until, DAY)}
    times |= {t for by in (starts, ends, joins, leaves) for t in by if t < until}
    queue = []
    for now, then in pairwise(sorted(times)):
        for pod in ends[now]:
            cluster.move(pod, -1)
        for pod in starts[now]:
            cluster.move(pod, 1)
        for pod in leaves[now]:
            queue.remove(pod)
        for pod in joins[now]:
            queue.insert(bisect_left(queue, (pod.created, pod.number), key=_rank), pod)
        if now % DAY == 0:
            demand = cluster.demand(now // DAY)
        if now < since - DAY:
            continue
        free, usable, cpu_binds = cluster.usable(demand)
        claims = cluster.walk(now, queue, free, usable)
        if now >= since:
            add_up(totals, cluster, (free, usable, cpu_binds), claims, (now, then))
    return totals


def _rank(pod):
    return pod.created, pod.number


def add_up(totals, cluster, state, claims, span):
    free, usable, cpu_binds = state
    now, then = span
    stuck, rest = free - usable, int(usable.sum())
    totals["held"] += cluster.shares * (then - now)
    totals["free"] += (1000 * int(cluster.touched.sum()) - cluster.shares) * (then - now)
    totals["stranded_cpu"] += 1000 * int(stuck[cpu_binds].sum()) * (then - now)
    totals["stranded_mem"] += 1000 * int(stuck[~cpu_binds].sum()) * (then - now)
    for name, gpus, since in claims:
        begin = min(max(since, now), then)
        totals[name] += 1000 * gpus * (then - begin)
        totals["free"] += 1000 * gpus * (begin - now)
        rest -= gpus
    totals["free"] += 1000 * rest * (then - now)


@pytest.mark.prove
@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_held_and_stranded_time_by_reason_equal_a_plain_loop(
    shared_data, store, proof_size, record_proof
):
    folder = shared_data / "traces" / "openb"
    files = folder / "openb_pod_list_default.csv", folder / "openb_node_list_gpu_node.csv"
    summary = import_trace(store, files[0], "openb", "openb", nodes=files[1], now=ORIGIN)
    assert round(summary.held_gpu_hours, 2) == 51_470.67
    held = defaultdict(list)
    for row in store.rows("SELECT run_id, node, gpu_uuid FROM allocation ORDER BY ALL"):
        held[row["run_id"]].append((row["node"], row["gpu_uuid"]))
    nodes = rows_of(files[1])
    pods = list(pods_of(rows_of(files[0]), held, nodes))
    last = max(pod.end for pod in pods)
    days = -(-last // DAY)
    # The last days are the busy ones.
    since, until = (days - proof_size(days)) * DAY, last
    window = Window(ORIGIN + timedelta(seconds=since), ORIGIN + timedelta(seconds=until))
    build(store, "openb", window)
    report = ledger_report(store, window)
    assert report.identity.holds
    hours = {row["class"]: float(row["gpu_hours"]) for row in report.rows if row["gpu_hours"]}
    hours["held"] = hours.pop("allocated_unmeasured")
    expected = {n: x / 3_600_000 for n, x in by_hand(nodes, pods, since, until).items() if x}
    assert hours == pytest.approx(expected, abs=0.005)
    assert hours["stranded_cpu"] > 0
    if since <= 0:
        assert hours["held"] == pytest.approx(51_470.67, abs=0.005)
    record_proof("openb_stranding", days=proof_size(days), gpu_hours=hours)
