from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PACKAGES = ("collector", "analytics", "scheduler_advisor", "dashboard", "unstrand")
HEAVY = {"pynvml", "duckdb", "pandas", "streamlit", "plotly", "numba"}


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_is_ours_and_not_a_namesake(package):
    module = importlib.import_module(package)
    assert Path(module.__file__).parent == PROJECT / package


def test_the_import_contracts_hold():
    answer = subprocess.run(
        [Path(sys.executable).with_name("lint-imports")],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout


def loaded_by(module: str) -> set[str]:
    code = f"import sys, {module}; print(*(set({sorted(HEAVY)!r}) & set(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    return set(answer.stdout.split())


def test_the_collectors_model_loads_nothing_heavy():
    assert loaded_by("collector.model") == set()


def test_the_simulator_core_loads_no_database_and_no_screen():
    assert loaded_by("scheduler_advisor.engine") <= {"numba"}
