"""Other people's simulators on the same input: SimPy's building blocks, and AccaSim.

AccaSim lives in an environment of its own, made when asked for: it wants an old Python's
`collections.Mapping`, which is put back before it is imported.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from scheduler_advisor.engine import Jobs

ACCASIM = """
import collections, collections.abc, sys, time
collections.Mapping = collections.abc.Mapping
from accasim.base.allocator_class import FirstFit
from accasim.base.scheduler_class import FirstInFirstOut
from accasim.base.simulator_class import Simulator

simulator = Simulator(sys.argv[1], sys.argv[2], FirstInFirstOut(FirstFit()),
                      scheduling_output=True, statistics_output=False, show_statistics=False)
began = time.process_time()
simulator.start_simulation()
print("seconds", time.process_time() - began)
"""


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


def accasim_fifo(trace: Path, gpus: int, folder: Path) -> tuple[float, list[int]]:
    """AccaSim's FIFO on one node of so many cores: CPU-seconds of the simulation, start times."""
    python = folder / "environment" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "environment"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "accasim==1.1.3"], check=True)
    system = {
        "groups": {"node": {"core": gpus}},
        "resources": {"node": 1},
        "system_name": "pool",
        "start_time": 0,
        "equivalence": {"processor": {"core": 1}},
    }
    (folder / "system.json").write_text(json.dumps(system))
    (folder / "jobs.swf").write_bytes(trace.read_bytes())
    done = subprocess.run(
        [python, "-c", ACCASIM, "jobs.swf", "system.json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    seconds = float(done.stdout.rsplit("seconds", 1)[1])
    return seconds, _accasim_starts(next((folder / "results").glob("sched-*")))


def _accasim_starts(path: Path) -> list[int]:
    """In order of job number; a line is `number;user;queued__places__started;ended;...`."""
    found = {}
    with path.open() as lines:
        for line in lines:
            number, rest = line.split(";", 1)
            started = rest.rsplit("__", 1)[1].split(";", 1)[0]
            day, clock = started.split(" ")
            hours, minutes, seconds = map(int, clock.split(":"))
            days = (_date(day) - _date("1970-01-01")).days
            found[int(number)] = days * 86400 + hours * 3600 + minutes * 60 + seconds
    return [found[number] for number in sorted(found)]


def _date(text: str):
    from datetime import date

    return date.fromisoformat(text)
