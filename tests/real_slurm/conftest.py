"""One real Slurm for all tests of this folder; see `lab.SlurmLab` for what it offers."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from scheduler_advisor.handover.steps import Edit


def _load(name, folder=Path(__file__).parent):
    """A file beside this one: test folders are no packages, so it has no import name."""
    path = folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"real_slurm_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


configuration_module, users_module, lab_module = (
    _load("configuration"),
    _load("users"),
    _load("lab"),
)
compressed_module = _load("compressed")
outline_module = _load("outline", Path(__file__).parents[1])


@pytest.fixture(scope="session")
def make_slurm_lab(system):
    """Start a Slurm with changed lines of slurm.conf: ``make_slurm_lab(DefMemPerCPU=None)``."""
    system.require(*configuration_module.PACKAGES)
    users = users_module.LabUsers(*configuration_module.ACCOUNTS.values())
    users.add()
    started = []

    def make(**settings):
        lab = lab_module.SlurmLab(configuration_module, **settings)
        started.append(lab)
        lab.start()
        return lab

    try:
        yield make
    finally:
        for lab in reversed(started):
            lab.stop()
        users.remove()


@pytest.fixture(scope="session")
def configuration():
    """What a lab is: its ``ACCOUNTS`` with their users, its ``NODES``, ``CLUSTER``."""
    return configuration_module


@pytest.fixture(scope="session")
def slurm_lab(make_slurm_lab):
    """The Slurm that the tests share: ask, submit, wait; see `lab.SlurmLab`."""
    return make_slurm_lab()


@pytest.fixture(scope="session")
def apply_steps():
    """``apply_steps(lab, made)``: a hand-over's own steps, on the real Slurm."""

    def apply(lab, made):
        for step in made.apply:
            if isinstance(step, Edit):
                subprocess.run(["patch", "-p0"], input=step.diff(), text=True, cwd=lab.folder,
                               check=True, capture_output=True)  # fmt: skip
            else:
                lab.run("sh", "-c", step.command)

    return apply


@dataclass(frozen=True)
class Workload:
    """Jobs of two teams that have run their course; see `workload`."""

    preempted: str
    array: str
    preemptor: str
    cancelled: str
    failed: str
    uneven: str
    running: str


@pytest.fixture(scope="session")
def workload(slurm_lab) -> Workload:
    """Two teams: one job preempted and run again, an array, one cancelled, one failed, one uneven
    over two nodes, one still running; node gpu4 drained."""
    lab = slurm_lab
    preempted = lab.submit("vision", "--requeue", "--gres=gpu:a100:8", "-N3", script="sleep 4")
    array = lab.submit("nlp", "--array=0-3%2", "--gres=gpu:t4:1", "-c4", script="sleep 1")
    lab.wait_for(preempted, "RUNNING")
    lab.wait_for(array, *["COMPLETED"])
    preemptor = lab.submit(
        "nlp", "-p", "high", "--gres=gpu:a100:8", "-N2", "--job-name=a|b", script="sleep 2"
    )
    lab.wait_for(preempted, "PREEMPTED")
    lab.wait_until_done(preemptor, array)
    lab.run("scontrol", "update", "nodename=gpu4", "state=drain", "reason=fan = loud [rack 2]")
    lab.wait_until_done(preempted)
    uneven = lab.submit("nlp", "-N2", "-n2", "-w", "gpu[1-2]", "--gpus=5", script="sleep 3")
    cancelled = lab.submit("vision", "--gpus=2", script="sleep 300")
    failed = lab.submit("vision", "--gpus=1", script="sleep 1; exit 3")
    lab.wait_for(cancelled, "RUNNING")
    lab.run("scancel", cancelled)
    running = lab.submit("nlp", "-w", "gpu1", "--gpus=3", "-c2", script="sleep 3000")
    lab.wait_for(running, "RUNNING")
    lab.wait_until_done(uneven, cancelled, failed)
    return Workload(preempted, array, preemptor, cancelled, failed, uneven, running)


_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d+)(?:,|$)")


@pytest.fixture(scope="session")
def gpu_seconds_by_account():
    """GPU-seconds per account straight from lines of `sacct`, without any code of ours."""

    def count(text: str) -> dict[str, int]:
        lines = [line.split("|") for line in text.splitlines() if line]
        names, found = [name.lower() for name in lines[0]], {}
        for line in lines[1:]:
            row = dict(zip(names, line, strict=False))
            gpus = _GPUS.search(row["alloctres"])
            if gpus is not None:
                held = int(gpus.group(1)) * int(row["elapsedraw"])
                found[row["account"]] = found.get(row["account"], 0) + held
        return found

    return count


@pytest.fixture(scope="session")
def compressed():
    """A minute of the lab as a day: see `compressed.jobs_of`, `play` and `recorded`."""
    return compressed_module


@pytest.fixture(scope="session")
def outline():
    """``outline(html)``: words, structure and plots' data of a page as lines."""
    return outline_module.outline_of
