"""Speed of the simulator's core: jobs per CPU-second of one core, without compile time.

    python benchmarks/simulator.py [--full] [--accasim] [--only SECTION] [--record FILE.json]

Each line is one workload under one policy; event counts are asserted, so a fast wrong answer
fails. Growth exponents are printed from pairs of sizes at equal mean queue. SimPy runs the same
FIFO input; so does AccaSim, in an environment of its own, with --accasim or where CI=true.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rivals import accasim_fifo, simpy_fifo

from scheduler_advisor.engine import (
    Cluster,
    Jobs,
    Outcome,
    Placement,
    Policy,
    preset,
    simulate,
    warm,
)
from scheduler_advisor.engine.ledger import sample_ledger

SWF = Path(__file__).resolve().parents[2] / "shared" / "data" / "traces" / "swf"
DEEP = preset("easy").with_values({"backfill.depth": 100})
FIGURES: dict[str, object] = {}
MEMORY = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from simulator import workload
from scheduler_advisor.engine import Cluster, preset, simulate
jobs = workload(1_000_000, 512, 0.9)
outcome = simulate(jobs, Cluster.uniform(512, 8), preset("easy"))
assert outcome.started.all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


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
    assert best.events == 2 * (len(jobs) - unplaceable), "events are missing"
    FIGURES[name] = {
        "jobs_per_s": round(len(jobs) / best.engine_s),
        "mean_queue": round(queue_of(best), 1),
    }
    print(
        f"{name:48s} {len(jobs) / best.engine_s:12,.0f} jobs/s"
        f"  (loop alone {len(jobs) / best.drive_s:12,.0f}; mean queue {queue_of(best):7.0f};"
        f" passes {best.passes:9,d}; examined {best.examined:11,d}; shadows {best.shadows:8,d})",
        flush=True,
    )
    return best


def queue_of(outcome: Outcome) -> float:
    """Jobs waiting, on average over the replay."""
    return outcome.queue_s / max(1, outcome.last_instant - int(outcome.jobs.submit.min()))


def exponent(small: Outcome, large: Outcome, by: float) -> float:
    """How the cost of one job grows: cost ~ size ** exponent."""
    cost = large.engine_s / len(large.jobs) / (small.engine_s / len(small.jobs))
    return math.log(cost) / math.log(by)


def with_queue(target: float, low: float, high: float, replay: Callable[[float], Outcome]) -> float:
    """The load between `low` and `high` at which the mean queue is about `target`."""
    for _ in range(9):
        middle = (low + high) / 2
        queue = queue_of(replay(middle))
        if 0.85 * target < queue < 1.15 * target:
            return middle
        low, high = (middle, high) if queue < target else (low, middle)
    return (low + high) / 2


def stranding(jobs: Jobs, cluster: Cluster) -> None:
    """FIFO with the ledger's classes and F at 200 instants."""
    fifo = measure("fifo, 512x8, load 0.9", jobs, cluster, preset("fifo"), 5)
    sample_ledger(fifo, 10)
    began = time.process_time()
    sample_ledger(fifo, 200)
    rate = len(jobs) / (time.process_time() - began + fifo.engine_s)
    FIGURES["fifo with F and stranding at 200 instants, jobs_per_s"] = round(rate)
    print(f"{'  with F and stranding at 200 instants':48s} {rate:12,.0f} jobs/s")


def network(jobs: Jobs) -> None:
    """Placement by the network, 16 hosts a leaf, 8 leaves a spine; jobs of one host, and gangs of
    up to eight."""
    random = np.random.default_rng(4)
    by_network = preset("fifo").with_values({"placement": "topology"})
    slowed = by_network.with_values({"topology.slowdown": "true"})
    for count in (512, 4096):
        hosts = Cluster.build(
            gpus=[8] * count,
            leaf=[f"l{node // 16}" for node in range(count)],
            spine=[f"s{node // 128}" for node in range(count)],
            gpu_model=["H100"] * count,
        )
        narrow = jobs if count == 512 else workload(len(jobs), count, 0.9)
        measure(f"topology, {count}x8, load 0.9", narrow, hosts, by_network)
        wide = narrow.changed(gpus=random.choice([1, 2, 4, 8, 16, 32, 64], len(jobs)))
        span = int((wide.gpus * wide.run).sum() / (count * 8 * 0.8))
        submit = wide.submit * span // max(1, int(wide.submit.max()))
        wide = wide.changed(submit=submit, eligible=submit)
        measure(f"topology with gangs, {count}x8, load 0.8", wide, hosts, by_network)
        measure(f"topology with gangs and slowdown, {count}x8", wide, hosts, slowed)


def scored(jobs: Jobs) -> None:
    """Placement by score in time, with CPUs and shares of GPUs."""
    random = np.random.default_rng(3)
    mixed = jobs.changed(
        cpu_milli=jobs.gpus * random.choice([4000, 8000, 12000], len(jobs)),
        gpu_milli=np.where(jobs.gpus == 1, random.choice([0, 300, 500], len(jobs)), 0),
    )
    nodes = Cluster.build(gpus=[8] * 512, cpu_milli=[96_000] * 512)
    for placement in (Placement.BEST_FIT, Placement.FGD, Placement.DOT_PRODUCT):
        policy = Policy(placement=placement)
        measure(f"fifo, {placement}, shares and CPUs, 512x8", mixed, nodes, policy)


def growth(name: str, policy: Policy, most: int, target: float) -> None:
    """Cost of a job from 64 GPUs up, at equal mean queue."""
    outcomes = []
    for count in (8, 64, 512, 4096)[:most]:
        cluster, size = Cluster.uniform(count, 8), max(100_000, 100 * count)

        def replay(load: float, count: int = count, size: int = size) -> Outcome:
            return simulate(workload(size, count, load), Cluster.uniform(count, 8), policy)

        load = with_queue(target, 0.5, 1.1, replay)
        jobs = workload(size, count, load)
        outcomes.append(
            measure(f"{name}, {count * 8} GPUs, load {load:.2f}", jobs, cluster, policy)
        )
    by = 8 ** (len(outcomes) - 1)
    found = exponent(outcomes[0], outcomes[-1], by)
    FIGURES[f"{name}: cost per job ~ GPUs ** x"] = round(found, 3)
    print(f"  cost per job ~ GPUs ** {found:.2f}")
    assert found < 0.5, "cost per job must grow slower than the square root of the size"


def deep_queues() -> None:
    """Real traces whose queues are long, with limits as given and 2.4 times as long."""
    itp, loose = swf("itp_c04"), swf("itp_c04", 2.4)
    conservative = preset("conservative")
    shallow = measure("itp_c04, easy, pool:552", itp, Cluster.pool(552), preset("easy"))
    measure("itp_c04, easy, 60x8", itp, Cluster.uniform(60, 8), preset("easy"))
    deep = measure("itp_c04, easy, pool:400", itp, Cluster.pool(400), preset("easy"))
    found = exponent(shallow, deep, queue_of(deep) / queue_of(shallow))
    FIGURES["easy: cost per job ~ mean queue ** x"] = round(found, 3)
    print(f"  cost per job ~ mean queue ** {found:.2f}")
    measure("itp_c04, conservative, pool:552", itp, Cluster.pool(552), conservative)
    outcomes = []
    for target in (150, 1000):

        def replay(load: float) -> Outcome:
            return simulate(loose, Cluster.pool(round(552 / load)), conservative)

        gpus = round(552 / with_queue(target, 1.0, 1.5, replay))
        name = f"itp_c04, conservative, pool:{gpus}, limits 2.4"
        outcomes.append(measure(name, loose, Cluster.pool(gpus), conservative, 1))
    found = exponent(*outcomes, queue_of(outcomes[1]) / queue_of(outcomes[0]))
    FIGURES["conservative: cost per job ~ mean queue ** x"] = round(found, 3)
    print(f"  cost per job ~ mean queue ** {found:.2f}")


def rivals(accasim: bool) -> None:
    """The same input, in the same run; starts must be the same to the second."""
    jobs = swf("kth")
    ours = measure("kth, fifo, pool:100", jobs, Cluster.pool(100), preset("fifo"))
    answers = {"SimPy": simpy_fifo(jobs, 100)}
    if accasim:
        with tempfile.TemporaryDirectory() as folder:
            answers["AccaSim"] = accasim_fifo(SWF / "kth.swf", 100, Path(folder))
    for name, (seconds, starts) in answers.items():
        same = int((np.array(starts) != ours.start).sum())
        times = seconds / ours.engine_s
        FIGURES[f"{name} on kth"] = {
            "jobs_per_s": round(len(jobs) / seconds),
            "ours_times_as_fast": round(times),
            "different_starts": same,
        }
        print(
            f"{'  ' + name + ', the same input':48s} {len(jobs) / seconds:12,.0f} jobs/s"
            f"  (ours is {times:,.0f} times as fast; {same} starts differ)"
        )
        assert name != "AccaSim" or (times >= 100 and same == 0)


def memory() -> None:
    """Peak of a process of its own that replays a million jobs."""
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, here], capture_output=True, text=True, check=True
    )
    FIGURES["peak MiB of a million jobs, easy, 512x8"] = int(done.stdout)
    print(f"a million jobs, easy, 512x8: peak {int(done.stdout):,} MiB")
    assert int(done.stdout) < 2048


def easy(jobs: Jobs, nodes: Cluster) -> None:
    """EASY at two loads, with limits as long as the runs and 2.4 times as long."""
    measure("easy, depth 100, 512x8, load 0.9", jobs, nodes, DEEP)
    for load in (0.9, 1.0):
        loose = workload(100_000, 512, load, 2.4)
        measure(f"easy, depth 100, 512x8, load {load}, limits 2.4", loose, nodes, DEEP)
    measure("easy, depth 100, 512x8, load 1.0", workload(100_000, 512, 1.0), nodes, DEEP)


def sections(full: bool, accasim: bool) -> dict[str, Callable[[], None]]:
    """What can be measured, by name."""
    nodes = Cluster.uniform(512, 8)
    jobs = workload(100_000, 512, 0.9)
    most = 4 if full else 3
    found: dict[str, Callable[[], None]] = {
        "stranding": lambda: stranding(jobs, nodes),
        "scored": lambda: scored(jobs),
        "network": lambda: network(jobs),
        "easy": lambda: easy(jobs, nodes),
        "growth-fifo": lambda: growth("fifo", preset("fifo"), most, 30),
        "growth-easy": lambda: growth("easy, depth 100", DEEP, most, 30),
    }
    if full:
        found["memory"] = memory
    if SWF.is_dir():
        found |= {"deep": deep_queues, "rivals": lambda: rivals(accasim)}
    return found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--full", action="store_true", help="a million jobs and 32,768 GPUs too")
    asked.add_argument("--accasim", action="store_true", default=os.environ.get("CI") == "true")
    asked.add_argument("--only", help="one section by its name")
    asked.add_argument("--record", type=Path, help="add the figures to those in this file")
    options = asked.parse_args()
    began = time.process_time()
    warm(lambda _, __, what: print(f"compiling {what}", file=sys.stderr))
    print(f"kernels compiled or loaded: {time.process_time() - began:.1f} CPU-s")
    for name, section in sections(options.full, options.accasim).items():
        if options.only in (None, name):
            section()
            _record(options.record)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:,.0f} MiB")


def _record(path: Path | None) -> None:
    if path is not None:
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(known | FIGURES, indent=2) + "\n")


if __name__ == "__main__":
    main()
