"""Speed of the simulator's core: jobs per CPU-second of one core, without compile time.

    python benchmarks/simulator.py [--full] [--skip-rivals]

Each line is one workload under one policy; event counts are asserted, so a fast wrong answer
fails. Growth exponents are printed from pairs of sizes. SimPy runs the same FIFO input.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from pathlib import Path

import numpy as np

from scheduler_advisor.engine import Cluster, Jobs, Outcome, Policy, preset, simulate, warm
from scheduler_advisor.engine.ledger import sample_ledger

SWF = Path(__file__).resolve().parents[2] / "shared" / "data" / "traces" / "swf"


def workload(count: int, nodes: int, load: float, looseness: float = 1.0, seed: int = 1) -> Jobs:
    """Poisson-like arrivals, log-normal run times, 1 to 8 GPUs; `looseness`: mean limit / run."""
    random = np.random.default_rng(seed)
    gpus = random.choice([1, 2, 4, 8], count, p=[0.5, 0.2, 0.15, 0.15])
    run = np.maximum(1, random.lognormal(7, 1.2, count)).astype(np.int64)
    span = float((gpus * run).sum()) / (nodes * 8 * load)
    submit = np.sort(random.uniform(0, span, count)).astype(np.int64)
    spread = random.uniform(1, max(1.0, 2 * looseness - 1), count)
    return Jobs.build(submit=submit, run=run, gpus=gpus, limit=(run * spread).astype(np.int64))


def swf(name: str, looseness: float = 1.0, copies: int = 1) -> Jobs:
    """A cleaned trace; `looseness` spreads the limits, `copies` repeats it end to end."""
    rows = [
        [int(word) for word in line.split()[:9]]
        for line in (SWF / f"{name}.swf").read_text().splitlines()
        if line and not line.startswith(";")
    ]
    table = np.array(rows * copies)
    random = np.random.default_rng(5)
    run = table[:, 3]
    limit = np.maximum(run, table[:, 8])
    if looseness > 1:
        limit = (run * random.uniform(1, 2 * looseness - 1, len(run))).astype(np.int64)
    return Jobs.build(submit=table[:, 1], run=run, gpus=table[:, 7], limit=limit)


def measure(name: str, jobs: Jobs, cluster: Cluster, policy: Policy, rounds: int = 3) -> Outcome:
    """The best of some rounds, printed; all jobs must have ended."""
    simulate(jobs.take(np.arange(min(200, len(jobs)))), cluster, policy)
    best = min((simulate(jobs, cluster, policy) for _ in range(rounds)), key=lambda o: o.engine_s)
    unplaceable = int((best.state == 2).sum())
    assert best.started.sum() + unplaceable == len(jobs), "jobs are missing"
    assert best.events == 2 * len(jobs) - unplaceable, "events are missing"
    queue = best.queue_s / max(1, best.last_instant - int(jobs.submit.min()))
    print(
        f"{name:44s} {len(jobs) / best.engine_s:12,.0f} jobs/s"
        f"  (loop alone {len(jobs) / best.drive_s:12,.0f}; mean queue {queue:7.0f};"
        f" passes {best.passes:9,d}; examined {best.examined:11,d}; shadows {best.shadows:8,d})",
        flush=True,
    )
    return best


def exponent(small: Outcome, large: Outcome, by: float) -> float:
    """How the cost of one job grows: cost ~ size ** exponent."""
    cost = large.engine_s / len(large.jobs) / (small.engine_s / len(small.jobs))
    return math.log(cost) / math.log(by)


def simpy_fifo(jobs: Jobs, gpus: int) -> tuple[float, list[int]]:
    """The same FIFO on a pool as SimPy would have it: CPU-seconds and start times."""
    import simpy

    env = simpy.Environment()
    pool = simpy.Container(env, gpus, init=gpus)
    turn = simpy.Resource(env, 1)
    starts = [0] * len(jobs)

    def job(index: int, submit: int, size: int, run: int):
        yield env.timeout(submit)
        with turn.request() as mine:
            yield mine
            yield pool.get(size)
        starts[index] = int(env.now)
        yield env.timeout(run)
        yield pool.put(size)

    began = time.process_time()
    rows = zip(jobs.submit.tolist(), jobs.gpus.tolist(), jobs.run.tolist(), strict=True)
    for index, (submit, size, run) in enumerate(rows):
        env.process(job(index, submit, size, run))
    env.run()
    return time.process_time() - began, starts


def rivals() -> None:
    jobs = swf("kth")
    ours = measure("kth, fifo, pool:100", jobs, Cluster.pool(100), preset("fifo"))
    seconds, starts = simpy_fifo(jobs, 100)
    same = int((np.array(starts) != ours.start).sum())
    print(
        f"{'  SimPy, the same input':44s} {len(jobs) / seconds:12,.0f} jobs/s"
        f"  (ours is {seconds / ours.engine_s:,.0f} times as fast; {same} starts differ)"
    )


def main() -> None:  # noqa: PLR0915 (a list of measurements)
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--full", action="store_true", help="a million jobs and 4,096 nodes too")
    asked.add_argument("--skip-rivals", action="store_true")
    options = asked.parse_args()
    began = time.process_time()
    warm(lambda text: print(text, file=sys.stderr))
    print(f"first run: {time.process_time() - began:.1f} CPU-s to compile or load the kernels")

    deep = preset("easy").with_values({"backfill.depth": 100})
    nodes = Cluster.uniform(512, 8)
    for load in (0.9, 1.0):
        tight, loose = workload(100_000, 512, load), workload(100_000, 512, load, 2.4)
        fifo = measure(f"fifo, 512x8, load {load}", tight, nodes, preset("fifo"))
        if load < 1:
            start = time.process_time()
            sample_ledger(fifo, 200)
            seconds = time.process_time() - start + fifo.engine_s
            print(f"{'  with stranding at 200 instants':44s} {len(tight) / seconds:12,.0f} jobs/s")
        measure(f"easy, depth 100, 512x8, load {load}", tight, nodes, deep)
        measure(f"easy, depth 100, 512x8, load {load}, limits 2.4", loose, nodes, deep)
    growth = []
    for count in (8, 64, 512, 4096) if options.full else (8, 64, 512):
        jobs = workload(100_000, count, 0.8)
        name = f"fifo, {count}x8, load 0.8"
        growth.append(measure(name, jobs, Cluster.uniform(count, 8), preset("fifo")))
    by = 8 ** (len(growth) - 1)
    print(f"  cost per job ~ nodes ** {exponent(growth[0], growth[-1], by):.2f}")
    ten = workload(10_000, 64, 0.9)
    hundred = workload(100_000, 64, 0.9)
    first = measure("easy, 64x8, 10,000 jobs", ten, Cluster.uniform(64, 8), deep)
    last = measure("easy, 64x8, 100,000 jobs", hundred, Cluster.uniform(64, 8), deep)
    print(f"  cost per job ~ jobs ** {exponent(first, last, 10):.2f}")
    if SWF.is_dir():
        itp = swf("itp_c04")
        measure("itp_c04, easy, 60x8", itp, Cluster.uniform(60, 8), preset("easy"))
        measure("itp_c04, easy, pool:400", itp, Cluster.pool(400), preset("easy"))
        measure("itp_c04, conservative, pool:552", itp, Cluster.pool(552), preset("conservative"))
        loose = swf("itp_c04", 2.4)
        measure("itp_c04, conservative, pool:552, limits 2.4", loose, Cluster.pool(552),
                preset("conservative"))  # fmt: skip
        measure("itp_c04, conservative, pool:480, limits 2.4", loose, Cluster.pool(480),
                preset("conservative"), 1)  # fmt: skip
        if not options.skip_rivals:
            rivals()
    if options.full:
        measure("fifo, 512x8, 1,000,000 jobs", workload(1_000_000, 512, 0.9), nodes,
                preset("fifo"), 1)  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:,.0f} MiB")


if __name__ == "__main__":
    main()
