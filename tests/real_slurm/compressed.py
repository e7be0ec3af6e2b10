"""A real Slurm's weeks in minutes: its accounting is read as if a minute had been a day.

Who starts when and where is Slurm's own decision; only the unit of time is another one. A second of
its own delay becomes 24 minutes, so jobs last hours.
"""

from __future__ import annotations

import json
import random
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from collector.slurm.sacct import FIELDS
from collector.slurm.settings import settings

DAY_S = 60  # of the lab
TIMES = 86_400 // DAY_S
ORIGIN = datetime(2026, 9, 7, tzinfo=UTC)  # a Monday
INSTANTS = ("submit", "eligible", "start", "end")
LENGTHS = ("suspended", "planned")
CLOCK = re.compile(r"(?:(\d+)-)?(\d+):(\d+):(\d+)(?:\.\d+)?\Z")
WEEKEND = 0.6  # of a working day's arrivals
A_DAY = 13  # arrivals of a working day; four nodes of one job each end about sixteen
# Options, how often, and the seconds of its runs: what people ask for where nobody named memory.
SHAPES = (
    (("--gpus=1", "-c2"), 0.74, (4, 24)),
    (("--gpus=2", "-c4", "--mem-per-gpu=50G"), 0.16, (4, 20)),
    (("--gpus=8", "-c16", "-N1"), 0.10, (5, 15)),
)


@dataclass(frozen=True)
class Asked:
    """One job: when it is submitted, by whom, with what, and how long it runs; seconds."""

    at_s: float
    account: str
    options: tuple[str, ...]
    run_s: int


def jobs_of(first_day: int, days: int, seed: int) -> list[Asked]:
    """The jobs of some days, in order; ``first_day`` 0 is a Monday, whose second 0 is 0."""
    draw = random.Random(seed)
    found = []
    for day in range(first_day, first_day + days):
        busy = WEEKEND if day % 7 in (5, 6) else 1.0
        at = (day - first_day) * DAY_S
        end = at + DAY_S
        while (at := at + draw.expovariate(A_DAY * busy / DAY_S)) < end:
            [shape] = draw.choices(SHAPES, [share for _, share, _ in SHAPES])
            options, _, (least, most) = shape
            account = draw.choice(("nlp", "nlp", "vision"))
            found.append(Asked(at, account, options, draw.randint(least, most)))
    return found


def play(lab, jobs: list[Asked], until_s: float) -> float:
    """Submit each job at its time from now on; returns when ``until_s`` have gone by: their
    beginning, in Unix time."""
    began = time.time()
    for job in jobs:
        time.sleep(max(0.0, began + job.at_s - time.time()))
        lab.submit(job.account, "--time=1", *job.options, script=f"sleep {job.run_s}")
    time.sleep(max(0.0, began + until_s - time.time()))
    return began


@dataclass(frozen=True)
class Recorded:
    """What Slurm's tools said, in stretched time."""

    sacct: str
    nodes: str
    partitions: str
    settings: dict[str, str]

    def write(self, folder: Path) -> dict[str, Path]:
        """The files that an importer reads."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings.json").write_text(json.dumps(self.settings, indent=1) + "\n")
        paths = {name: folder / f"{name}.txt" for name in ("sacct", "nodes", "partitions")}
        for name, path in paths.items():
            path.write_text(getattr(self, name))
        return paths

    @classmethod
    def read(cls, folder: Path) -> Recorded:
        """What `write` wrote."""
        texts = [(folder / f"{name}.txt").read_text() for name in ("sacct", "nodes", "partitions")]
        return cls(*texts, json.loads((folder / "settings.json").read_text()))


def recorded(lab, began: float) -> Recorded:
    """Everything that the lab's Slurm knows now; second ``began`` is `ORIGIN`."""
    known = {name.lower() for name in lab.run("sacct", "--helpformat").split()}
    fields = ",".join(name for name in FIELDS.split(",") if name in known)
    text = lab.sacct(fields, "--noconvert", SLURM_TIME_FORMAT="%s")
    shown = lab.run("scontrol", "show", "partition", "-o", SLURM_TIME_FORMAT="%s")
    partitions = shown.replace("MaxTime=01:00:00", "MaxTime=UNLIMITED")
    config = _config(lab.run("scontrol", "show", "config"))
    return Recorded(
        sacct=stretched(text, int(began)),
        nodes=_plain(lab.run("scontrol", "show", "node", "-d", "-o", SLURM_TIME_FORMAT="%s")),
        partitions=partitions,
        settings=settings(config, partitions, lab.run("sacctmgr", "-P", "show", "qos")),
    )


def at(began: float, moment: float) -> datetime:
    """The stretched instant of a moment of the lab."""
    return ORIGIN + timedelta(seconds=(moment - began) * TIMES)


def _config(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _plain(nodes: str) -> str:
    """Without the host that the nodes are played on."""
    nodes = re.sub(r" (NodeHostName|NodeAddr)=\S+", "", nodes)
    nodes = re.sub(r" OS=.*? (?=RealMemory=)", " ", nodes)
    return re.sub(r" (BootTime|SlurmdStartTime|LastBusyTime|FreeMem|CPULoad)=\S+", "", nodes)


def stretched(text: str, began: int) -> str:
    """Lines of sacct in stretched time."""
    head, *lines = text.splitlines()
    names = [name.lower() for name in head.split("|")]
    return "\n".join([head, *("|".join(_row(names, line, began)) for line in lines)]) + "\n"


def _row(names: list[str], line: str, began: int) -> list[str]:
    cells = line.split("|")
    for place, name in enumerate(names):
        cells[place] = _cell(name, cells[place], began)
    return cells


def _cell(name: str, text: str, began: int) -> str:
    if name in INSTANTS and text.isdigit():
        return str(int(ORIGIN.timestamp()) + (int(text) - began) * TIMES)
    if name in ("elapsedraw", "timelimitraw") and text.isdigit():
        return str(int(text) * TIMES)
    clock = CLOCK.match(text) if name in LENGTHS else None
    if clock is None:
        return text
    days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
    length = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * TIMES
    days, rest = divmod(length, 86_400)
    return f"{days}-{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
