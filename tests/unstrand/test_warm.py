"""The simulator is compiled beside a service's work, once, and never outlives it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scheduler_advisor import compiled
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
    monkeypatch.setattr(warm, "simulator_is_warm", (tmp_path / "warm").exists)
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
    monkeypatch.setattr(compiled, "ENGINE", engine)
    before = compiled.mark()
    (engine / "drive.py").write_text("one = 2\n")
    assert compiled.mark() != before


def test_how_far_the_compiler_is_can_be_read_while_it_works_and_not_after(tmp_path):
    file = tmp_path / "warming.json"
    assert compiled.compiling(file) is None
    with compiled.Progress(file) as progress:
        first = compiled.compiling(file)
        assert (first.share, first.what) == (0.0, "")
        assert first.left_s == pytest.approx(compiled.USUAL_S, rel=0.05)
        progress.tell(0.25, 0.5, "the queue")
        later = compiled.compiling(file)
        assert 0.25 <= later.share < 0.5
        assert later.what == "the queue"
    assert compiled.compiling(file) is None


def test_a_compiler_that_was_killed_is_not_waited_for(tmp_path):
    file = tmp_path / "warming.json"
    child = subprocess.run(
        [sys.executable, "-c",
         "import os, sys; from pathlib import Path\n"
         "from scheduler_advisor.compiled import Progress\n"
         "with Progress(Path(sys.argv[1])) as one:\n"
         "    one.tell(0.5, 0.9, 'x'); os.kill(os.getpid(), 9)", str(file)],
        check=False,
    )  # fmt: skip
    assert child.returncode == -9
    assert file.exists()
    assert compiled.compiling(file) is None
