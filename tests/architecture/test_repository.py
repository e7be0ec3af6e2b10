"""Rules that a reader of the repository relies on."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
BANNED_MODULE_NAMES = {"utils", "common", "helpers", "manager", "shared"}
PACKAGES = ("collector", "analytics", "scheduler_advisor", "dashboard", "unstrand")


def modules() -> list[Path]:
    return [file for package in PACKAGES for file in (PROJECT / package).rglob("*.py")]


def test_no_module_has_a_name_that_says_nothing():
    assert [m for m in modules() if m.stem in BANNED_MODULE_NAMES] == []


def test_no_handler_swallows_every_error_in_silence():
    silent = []
    for module in modules():
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler):
                broad = node.type is None or getattr(node.type, "id", "") in (
                    "Exception",
                    "BaseException",
                )
                if broad and all(isinstance(s, (ast.Pass, ast.Continue)) for s in node.body):
                    silent.append(f"{module}:{node.lineno}")
    assert silent == []


def test_every_sql_file_says_first_what_a_row_means():
    files = list((PROJECT / "analytics" / "sql").rglob("*.sql"))
    assert [f.name for f in files if not re.match(r"-- .*row", f.read_text(encoding="utf-8"))] == []


def test_the_migrations_are_numbered_without_a_gap():
    files = sorted((PROJECT / "collector" / "migrations").glob("*.sql"))
    assert [int(file.name[:4]) for file in files] == list(range(1, len(files) + 1))


def test_the_locks_name_no_address():
    for lock in (PROJECT / "locks").glob("*.txt"):
        assert "://" not in lock.read_text(encoding="utf-8"), lock.name


def test_no_tracked_file_names_a_path_of_a_build_machine():
    if not (PROJECT / ".git").exists():
        pytest.skip("not a git checkout: tracked files are unknown")
    answer = subprocess.run(
        ["git", "grep", "-lE", r"/work/(main|shared)|files\.pythonhosted|/root/\.pyenv"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert set(answer.stdout.split()) <= {"tests/architecture/test_repository.py"}
