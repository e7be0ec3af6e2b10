"""The scripts that Slurm runs before and after a job, and what the agent reads of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from collector.mapping.slurm import PrologMap

SCRIPTS = Path(__file__).parents[3] / "deploy" / "slurm"


@pytest.fixture
def slurm(tmp_path):
    """Run prolog or epilog for a job; a made-up driver has two GPUs whose minors are swapped."""
    for name, minor, uuid in (("0000:10:00.0", 1, "GPU-first"), ("0000:11:00.0", 0, "GPU-second")):
        folder = tmp_path / "proc" / name
        folder.mkdir(parents=True)
        (folder / "information").write_text(
            f"Model: \t\t NVIDIA H100\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n"
        )

    def run(script, job, gpus="", **more):
        environment = {
            "PATH": "/usr/bin:/bin", "UNSTRAND_GPU_MAP": str(tmp_path / "map"),
            "UNSTRAND_NVIDIA_PROC": str(tmp_path / "proc"), "SLURM_JOB_ID": str(job),
            "SLURM_JOB_UID": "1000", "SLURM_JOB_GPUS": gpus, **more,
        }  # fmt: skip
        path = SCRIPTS / f"gpu-map-{script}.sh"
        subprocess.run(["/bin/sh", str(path)], env=environment, check=True, timeout=20)

    run.jobs = lambda: PrologMap([tmp_path / "map"]).read()[0]
    return run


def test_uuids_are_written_as_they_are(slurm):
    slurm("prolog", 17, "GPU-first,MIG-x")
    assert slurm.jobs() == {"GPU-first": ["17"], "MIG-x": ["17"]}


def test_numbers_are_left_out_unless_the_site_says_what_they_mean(slurm):
    slurm("prolog", 17, "0,1")
    assert slurm.jobs() == {}
    slurm("prolog", 17, "0", UNSTRAND_GPU_NUMBERS="minor")
    assert slurm.jobs() == {"GPU-second": ["17"]}


def test_the_epilog_takes_its_own_job_out_and_no_other(slurm):
    for job in (17, 170, 18):
        slurm("prolog", job, "GPU-first")
    slurm("epilog", 17)
    assert slurm.jobs() == {"GPU-first": ["170", "18"]}
    slurm("epilog", 170)
    slurm("epilog", 18)
    assert slurm.jobs() == {}


def test_a_job_without_gpus_changes_nothing(slurm):
    slurm("prolog", 17, "")
    slurm("epilog", 17)
    assert slurm.jobs() == {}
