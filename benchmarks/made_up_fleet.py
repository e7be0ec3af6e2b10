"""A fleet for benchmarks: jobs that a plain first-come scheduler with backfill placed on nodes of
eight GPUs, and a sample of every GPU at every step, written as facts into a store."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from collector.store import Work

T0 = datetime(2026, 10, 5, tzinfo=UTC)
GPUS, CPUS, MEM_MIB = 8, 96, 1_048_576
HOUR = 3_600_000_000
DEPTH = 200
WHOLE = 0.7


@dataclass
class Job:
    submit: int
    length: int
    gpus: int
    cpus: int
    limit_s: int
    start: int | None = None

    @property
    def nodes(self) -> int:
        return -(-self.gpus // GPUS)

    @property
    def per_node(self) -> int:
        return min(self.gpus, GPUS)


@dataclass
class Fleet:
    """Jobs and where they ran: ``held`` = rows (job, node, mask of its GPUs there)."""

    nodes: int
    jobs: list[Job]
    held: list[tuple[int, int, int]] = field(default_factory=list)


def make_jobs(rng: np.random.Generator, nodes: int, days: int, per_day: int) -> list[Job]:
    """Arrivals from a day before T0 on, at a load a little above what the fleet can take."""
    count = per_day * (days + 1)
    gpus = rng.choice([1, 2, 4, 8, 16, 32], count, p=[0.45, 0.15, 0.15, 0.17, 0.05, 0.03])
    mean = 1.03 * nodes * GPUS * 24 * HOUR * (days + 1) / float(gpus.sum())
    length = np.maximum(rng.lognormal(np.log(mean) - 0.5, 1.0, count), 60e6)
    submit = np.sort(rng.uniform(-24 * HOUR, days * 24 * HOUR, count))
    cpus = rng.choice([4, 8, 12, 16], count, p=[0.3, 0.4, 0.2, 0.1])
    limit = length / 1e6 * rng.uniform(1, 4, count)
    return [
        Job(int(s), int(n), int(g), min(int(c) * min(int(g), GPUS), CPUS), int(e) + 60)
        for s, n, g, c, e in zip(submit, length, gpus, cpus, limit, strict=True)
    ]


def schedule(jobs: list[Job], nodes: int, until: int) -> Fleet:  # noqa: C901, PLR0915 - one loop
    """Start jobs in order of arrival, smaller ones further back where the first do not fit."""
    fleet = Fleet(nodes, jobs)
    free, cpus = [(1 << GPUS) - 1] * nodes, [CPUS] * nodes
    # Whole nodes for the jobs that want whole nodes: else small ones would keep them out for ever.
    large = round(WHOLE * nodes)
    by_free = [
        [set() for _ in range(GPUS)] + [set(part)] for part in (range(large), range(large, nodes))
    ]
    ends: list[tuple[int, int, list[tuple[int, int]]]] = []
    queue: list[int] = []

    def move(node: int, mask: int, need: int) -> None:
        part = by_free[node >= large]
        part[free[node].bit_count()].discard(node)
        free[node] ^= mask
        cpus[node] += need
        part[free[node].bit_count()].add(node)

    def places(job: Job) -> list[int]:
        found = []
        for amount in range(job.per_node, GPUS + 1):
            for node in by_free[job.gpus < GPUS][amount]:
                if cpus[node] >= job.cpus:
                    found.append(node)
                    if len(found) == job.nodes:
                        return found
        return []

    def start(now: int) -> None:
        refused: set[tuple[int, int]] = set()
        for j in queue[:DEPTH]:
            job = jobs[j]
            wish = (job.gpus, job.cpus)
            chosen = [] if wish in refused else places(job)
            if not chosen:
                refused.add(wish)
                continue
            job.start = now
            taken = []
            for node in chosen:
                bits = [g for g in range(GPUS) if free[node] >> g & 1][: job.per_node]
                mask = sum(1 << g for g in bits)
                move(node, mask, -job.cpus)
                fleet.held.append((j, node, mask))
                taken.append((node, mask))
            queue.remove(j)
            heapq.heappush(ends, (now + job.length, j, taken))

    arrivals = iter([*((job.submit, j) for j, job in enumerate(jobs)), (until, -1)])
    arrival = next(arrivals)
    while arrival[0] < until or (ends and ends[0][0] < until):
        if ends and ends[0][0] <= arrival[0]:
            now, j, taken = heapq.heappop(ends)
            for node, mask in taken:
                move(node, mask, jobs[j].cpus)
        else:
            now = arrival[0]
            queue.append(arrival[1])
            arrival = next(arrivals)
        start(now)
    return fleet


def stamps(us: list[int] | np.ndarray) -> pa.Array:
    origin = int(T0.timestamp() * 1e6)
    return pa.array(np.asarray(us, np.int64) + origin, pa.timestamp("us"))


def _maybe(us: list[int | None]) -> pa.Array:
    origin = int(T0.timestamp() * 1e6)
    return pa.array([None if t is None else t + origin for t in us], pa.timestamp("us"))


def write_fleet(work: Work, fleet: Fleet, until: int) -> int:
    """Nodes, jobs, runs and allocations of everything that ran or waited at T0 or later."""
    ends = {
        j: None if job.start is None or job.start + job.length > until else job.start + job.length
        for j, job in enumerate(fleet.jobs)
    }
    kept = [
        j for j, job in enumerate(fleet.jobs)
        if job.start is None or job.start + job.length > 0
    ]  # fmt: skip
    jobs, n = [fleet.jobs[j] for j in kept], len(kept)
    names = [f"r{j:07d}" for j in kept]
    text = {"cluster": ["bench"] * n, "job_id": names, "source": ["bench"] * n}
    who = {
        "account": [f"team{j % 12}" for j in kept],
        "user_name": [f"user{j % 90}" for j in kept],
        "submit_at": stamps([job.submit for job in jobs]),
        "limit_s": [job.limit_s for job in jobs],
    }
    work.append(
        "job",
        {
            **text, **who, "req_nodes": [job.nodes for job in jobs],
            "req_gpus": [job.gpus for job in jobs],
            "req_cpus": [job.cpus * job.nodes for job in jobs],
        },
    )  # fmt: skip
    state = ["PENDING" if job.start is None else "RUNNING" if ends[j] is None else "COMPLETED"
             for j, job in zip(kept, jobs, strict=True)]  # fmt: skip
    work.append(
        "job_run",
        {
            **text, **who, "run_id": names, "attempt": [1] * n, "state": state,
            "eligible_at": stamps([job.submit for job in jobs]),
            "start_at": _maybe([job.start for job in jobs]),
            "end_at": _maybe([ends[j] for j in kept]),
            "gpus": [job.gpus for job in jobs], "nodes": [job.nodes for job in jobs],
            "cpus": [job.cpus * job.nodes for job in jobs],
            "mem_mib": [job.gpus * 65536 for job in jobs],
        },
    )  # fmt: skip
    chosen = set(kept)
    held = [row for row in fleet.held if row[0] in chosen]
    m = len(held)
    work.append(
        "allocation",
        {
            "cluster": ["bench"] * m, "source": ["bench"] * m,
            "run_id": [f"r{j:07d}" for j, _, _ in held],
            "node": [f"n{node:04d}" for _, node, _ in held],
            "gpus": [mask.bit_count() for _, _, mask in held],
            "share_num": [1] * m, "share_den": [1] * m,
            "cpus": [fleet.jobs[j].cpus for j, _, _ in held],
            "mem_mib": [mask.bit_count() * 65536 for _, _, mask in held],
            "start_at": _maybe([fleet.jobs[j].start for j, _, _ in held]),
            "end_at": _maybe([ends[j] for j, _, _ in held]),
        },
    )  # fmt: skip
    size = fleet.nodes
    work.append(
        "node",
        {
            "cluster": ["bench"] * size, "node": [f"n{i:04d}" for i in range(size)],
            "gpu_model": ["h100"] * size, "gpus": [GPUS] * size, "cpus": [CPUS] * size,
            "mem_mib": [MEM_MIB] * size, "rack": [f"rack{i // 16:03d}" for i in range(size)],
            "leaf": [f"leaf{i // 32:03d}" for i in range(size)],
            "owned": [True] * size, "valid_from": stamps([-30 * 24 * HOUR] * size),
            "source": ["bench"] * size,
        },
    )  # fmt: skip
    window = {"cluster": ["bench"], "kind": ["scheduler"], "source": ["bench"]}
    work.append("fact_window", {**window, "since": stamps([-24 * HOUR]), "until": stamps([until])})
    return n


def write_samples(work: Work, fleet: Fleet, days: int, step_s: int) -> int:
    """One sample of every GPU at every step, held or not, tagged with the run that holds it; in
    order of time, as agents bring them."""
    held = [
        (f"n{node:04d}-{g}", f"r{j:07d}", fleet.jobs[j].start, fleet.jobs[j].length)
        for j, node, mask in fleet.held
        for g in range(GPUS)
        if mask >> g & 1
    ]
    work.execute(
        "CREATE TABLE bench_holds (gpu VARCHAR, run_id VARCHAR, start_at TIMESTAMP, "
        "end_at TIMESTAMP)"
    )
    work.append(
        "bench_holds",
        {
            "gpu": [row[0] for row in held], "run_id": [row[1] for row in held],
            "start_at": _maybe([row[2] for row in held]),
            "end_at": _maybe([row[2] + row[3] for row in held]),
        },
    )  # fmt: skip
    for day in range(days):
        work.execute(
            f"""
INSERT INTO sample (cluster, node, gpu_uuid, run_id, ts, step_s, util_ratio, sm_active_ratio,
  power_mw, mem_used_mib, mem_total_mib, processes, source)
SELECT 'bench', 'n' || lpad((g // {GPUS})::VARCHAR, 4, '0') AS node,
  grid.gpu, CASE WHEN ts <= h.end_at THEN h.run_id END AS run, ts, {step_s},
  CASE WHEN run IS NULL THEN 0 ELSE (hash(run, ts, g) % 101) / 100.0 END,
  CASE WHEN run IS NULL THEN 0 ELSE (hash(run, ts, g) % 60) / 100.0 END,
  CASE WHEN run IS NULL THEN 70000 ELSE 300000 + hash(run, ts) % 300000 END,
  CASE WHEN run IS NULL THEN 600 ELSE 600 + hash(run) % 70000 END, 81559,
  CASE WHEN run IS NULL THEN 0 ELSE 1 END, 'bench'
FROM (SELECT g, 'n' || lpad((g // {GPUS})::VARCHAR, 4, '0') || '-' || (g % {GPUS}) AS gpu, ts
  FROM range({fleet.nodes * GPUS}) r(g), (SELECT unnest(generate_series(
    TIMESTAMP '{T0:%Y-%m-%d}' + INTERVAL {day} DAY + INTERVAL {step_s} SECOND,
    TIMESTAMP '{T0:%Y-%m-%d}' + INTERVAL {day + 1} DAY, INTERVAL {step_s} SECOND)) AS ts)) grid
ASOF LEFT JOIN bench_holds h ON h.gpu = grid.gpu AND grid.ts > h.start_at
ORDER BY ts, g"""
        )
    work.execute("DROP TABLE bench_holds")
    return int(work.value("SELECT count(*) FROM sample"))
