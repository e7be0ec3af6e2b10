"""The command line as a user meets it, without a process of its own unless a test asks for one."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from pathlib import Path

import pytest

from unstrand.__main__ import run


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch, tmp_path):
    """A developer's own settings must not decide a test."""
    for name in ("DB", "SERVER", "PORT", "HOST", "LOG_LEVEL"):
        monkeypatch.delenv(f"UNSTRAND_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def cli(capsys):
    """``cli("report", "ledger", "--db", path)`` -> `Answer`."""

    def call(*arguments):
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Answer(code, printed.out, printed.err)

    return call


@pytest.fixture(scope="package")
def demo_db(tmp_path_factory) -> Path:
    """A file with the demo in it, built once by the command itself."""
    path = tmp_path_factory.mktemp("demo") / "demo.duckdb"
    assert run(["demo", "--once", "--db", str(path)]) == 0
    return path


@pytest.fixture
def unused_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
