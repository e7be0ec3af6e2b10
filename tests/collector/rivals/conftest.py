from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def rivals(system, tmp_path_factory) -> Path:
    """The folder of programs of an environment with nvitop, nvitop-exporter and gpustat.

    Made where system packages may be installed; UNSTRAND_RIVALS names one that is there already.
    """
    ready = os.environ.get("UNSTRAND_RIVALS")
    if ready:
        return Path(ready)
    if not system.allowed:
        pytest.skip("nvitop and gpustat are tried only with CI=true or UNSTRAND_SYSTEM_TESTS=1")
    folder = tmp_path_factory.mktemp("rivals")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "-r", str(HERE / "requirements.txt")], check=True, capture_output=True)
    return folder / "bin"


@pytest.fixture
def run(stub_library, scenario):
    """Run a program on the stub and the scenario of the test, and give what it prints."""

    def program(*command, check=True):
        environment = os.environ | {"LD_LIBRARY_PATH": str(Path(stub_library).parent)}
        answer = subprocess.run(
            [str(part) for part in command], env=environment, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip
        assert not check or answer.returncode == 0, answer.stderr
        return answer

    return program
