from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


def test_hadolint_finds_nothing_in_the_dockerfile():
    answer = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), PROJECT / "Dockerfile"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stdout == ""
    assert answer.returncode == 0


@pytest.mark.real
def test_docker_compose_accepts_the_file(system):
    system.require("docker-compose", binaries=("docker-compose",))
    answer = subprocess.run(
        ["docker-compose", "-f", PROJECT / "docker-compose.yml", "config", "-q"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
