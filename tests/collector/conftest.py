"""The stub driver library and the scenarios that drive it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

STUB = Path(__file__).parents[1] / "nvml_stub"
H100 = {
    "count": 1, "gpu.name": "NVIDIA H100 80GB HBM3", "gpu.util": 40, "gpu.mem_util": 20,
    "gpu.mem_mib": 81559, "gpu.reserved_mib": 479, "gpu.used_mib": 10240,
    "gpu.power_mw": 350000, "gpu.power_limit_mw": 700000, "gpu.energy_mj": 123456789,
    "gpu.power_average_mw": 351000, "gpu.power_instant_mw": 340000,
    "gpu.temperature": 55, "gpu.mem_temperature": 61, "gpu.sm_clock": 1980, "gpu.mem_clock": 2619,
    "gpu.reasons": 4, "gpu.encoder": 0, "gpu.decoder": 0, "gpu.links": 18,
    "gpu.nvlink_tx_kib": 18000, "gpu.nvlink_rx_kib": 36000,
    "gpu.pcie_tx_bytes": 1000, "gpu.pcie_rx_bytes": 2000, "gpu.pcie_replays": 3,
    "gpu.ecc_corr": 1, "gpu.ecc_unc": 0, "gpu.ecc_corr_life": 5, "gpu.ecc_unc_life": 0,
    "gpu.rows_corr": 0, "gpu.mig": 0,
}  # fmt: skip


def _compile(folder: Path, *options: str) -> str:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not here: the stub driver library cannot be compiled")
    command = [sys.executable, str(STUB / "build.py"), str(folder), *options]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stderr == "", answer.stderr
    return answer.stdout.strip()


@pytest.fixture(scope="session")
def stub_library(tmp_path_factory) -> str:
    """Our libnvidia-ml.so.1, where every symbol exists."""
    return _compile(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def bare_stub_library(tmp_path_factory) -> str:
    """Our libnvidia-ml.so.1 as an old driver: most symbols are not there."""
    return _compile(tmp_path_factory.mktemp("nvml-bare"), "--bare")


class Scenario:
    """The scenario file; `set` changes some keys, a value of None removes one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values: dict[str, object] = dict(H100)
        self.set()

    def set(self, changes=(), **more) -> None:
        self.values |= dict(changes) | more
        lines = [f"{key} = {value}\n" for key, value in self.values.items() if value is not None]
        fresh = self.path.with_suffix(".new")
        fresh.write_text("".join(lines))
        fresh.replace(self.path)

    def only(self, values) -> None:
        self.values = dict(values)
        self.set()


@pytest.fixture
def scenario(tmp_path, monkeypatch) -> Scenario:
    """One H100 at 40%; the stub and the Python source read it at each call."""
    made = Scenario(tmp_path / "scenario.txt")
    monkeypatch.setenv("UNSTRAND_NVML_SCENARIO", str(made.path))
    # Set where the C library sees it, too: putenv is what os.environ does.
    assert os.environ["UNSTRAND_NVML_SCENARIO"] == str(made.path)
    return made
