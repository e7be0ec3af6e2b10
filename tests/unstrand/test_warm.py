"""The simulator is compiled beside a service's work, once, and never outlives it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from unstrand import warm


@pytest.fixture
def started(monkeypatch, tmp_path):
    """What is started instead of a compiler that takes minutes: a child that sleeps as long."""
    children = []
    real = subprocess.Popen

    def start(command):
        assert command == [sys.executable, "-m", "unstrand.warm", "simulator", "beside"]
        children.append(real([sys.executable, "-c", "import time; time.sleep(600)"]))
        return children[-1]

    monkeypatch.setattr(warm.subprocess, "Popen", start)
    monkeypatch.setattr(warm, "_mark", lambda: tmp_path / "warm")
    return children


def test_a_cold_simulator_is_compiled_while_the_block_runs_and_no_longer(started):
    with warm.warmed_beside():
        assert started[0].poll() is None
    assert started[0].poll() is not None


def test_a_warm_one_is_left_alone(started, tmp_path):
    (tmp_path / "warm").touch()
    with warm.warmed_beside():
        assert started == []


def test_the_mark_changes_with_the_sources(monkeypatch, tmp_path):
    engine = tmp_path / "engine"
    engine.mkdir()
    (engine / "drive.py").write_text("one = 1\n")
    monkeypatch.setattr(warm, "_ENGINE", engine)
    before = warm._mark()
    (engine / "drive.py").write_text("one = 2\n")
    assert warm._mark() != before
