"""The recording script on a real GPU; and that it runs at all, on the stub driver."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
STUB = HERE.parent / "nvml_stub" / "build.py"


def record(folder, *options, **environment):
    return subprocess.run(
        [sys.executable, str(HERE / "record.py"), str(folder), *options],
        env=os.environ | environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


@pytest.mark.gpu
@pytest.mark.slow
def test_a_real_gpu_agrees_with_nvidia_smi_under_a_known_load(tmp_path):
    if not Path("/dev/nvidiactl").exists():
        pytest.skip("no NVIDIA GPU here: the driver itself is not tried")
    answer = record(tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found = json.loads((tmp_path / "record.json").read_text())
    assert all(row["ok"] is not False for row in found["comparison"])
    assert found["loaded"][-1]["values"]["util_ratio"] > 0.9


def test_the_script_records_every_call_on_the_stub(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not here: the stub driver library cannot be compiled")
    build = [sys.executable, str(STUB), str(tmp_path / "stub")]
    library = subprocess.run(build, capture_output=True, text=True, check=True).stdout.strip()
    scenario = tmp_path / "scenario.txt"
    scenario.write_text("count = 1\ngpu.util = 40\ngpu.mem_mib = 100\ngpu.power_mw = 1000\n")
    answer = record(
        tmp_path, "--seconds", "2", "--library", library, UNSTRAND_NVML_SCENARIO=str(scenario)
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found = json.loads((tmp_path / "record.json").read_text())
    assert found["calls"]["nvmlDeviceGetPowerUsage"]["returned"] == "1000"
    assert found["calls"]["nvmlDeviceGetSamples 1 0"]["returned"] == "NVMLError 3"
    assert len(found["calls"]) > 30
    assert found["loaded"][0]["values"]["util_ratio"] == 0.4
