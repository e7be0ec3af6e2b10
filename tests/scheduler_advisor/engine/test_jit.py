"""No kernel runs from a cache that is older than the code which dissolved into it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scheduler_advisor.engine import drive, jit

ENGINE = "scheduler_advisor.engine"


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "engine"
    shutil.copytree(Path(jit.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def edit(folder, name):
    with (folder / name).open("a") as source:
        source.write("# changed\n")


def test_a_drivers_entry_carries_the_digest_of_its_sources():
    if not hasattr(drive.drive, "_cache"):
        pytest.skip("the compiler is switched off (NUMBA_DISABLE_JIT)")
    stamp = drive.drive._cache._cache_file._source_stamp
    assert stamp == jit.sources_digest(f"{ENGINE}.drive")


@pytest.mark.parametrize("edited", ["drive.py", "heap.py", "bits.py", "jit.py"])
def test_a_change_of_what_a_driver_uses_near_or_far_changes_its_digest(copy, edited):
    before = jit.sources_digest(f"{ENGINE}.drive", copy)
    edit(copy, edited)
    assert jit.sources_digest(f"{ENGINE}.drive", copy) != before


def test_a_change_of_what_a_driver_does_not_use_leaves_its_digest(copy):
    before = jit.sources_digest(f"{ENGINE}.drive", copy)
    edit(copy, "drive_planned.py")
    assert jit.sources_digest(f"{ENGINE}.drive", copy) == before


def test_a_package_is_its_init_file(copy):
    (copy / "fresh.py").write_text(f"import {ENGINE}.packing\nfrom {ENGINE} import heap\n")
    before = jit.sources_digest(f"{ENGINE}.fresh", copy)
    edit(copy, "heap.py")
    between = jit.sources_digest(f"{ENGINE}.fresh", copy)
    edit(copy, "packing/__init__.py")
    assert len({before, between, jit.sources_digest(f"{ENGINE}.fresh", copy)}) == 3
