"""What every test may use: an empty store, the shared data, and system packages where allowed."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import settings

from collector.store import Store

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
ENABLE = "CI=true or UNSTRAND_SYSTEM_TESTS=1, as root on Debian"
PROJECT = Path(__file__).parents[1]
_LOCK = Path(tempfile.gettempdir()) / "unstrand-tests-install.lock"

settings.register_profile("default", deadline=None, derandomize=True)
settings.load_profile("default")


@pytest.fixture
def store(tmp_path):
    """An empty store at the newest schema version."""
    with Store.open(tmp_path / "test.duckdb", clock=lambda: NOW) as opened:
        yield opened


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real traces and independent answers beside the checkout."""
    folder = PROJECT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no ../shared/data beside the checkout: real traces are not tried")
    return folder


@pytest.fixture
def proof_size():
    """Full size under `make prove`, a twentieth otherwise: ``proof_size(10_000)`` -> 500."""
    full = os.environ.get("UNSTRAND_PROVE") == "1"
    return lambda count: count if full else max(1, count // 20)


@pytest.fixture
def record_proof():
    """Write figures with the commit to docs/proofs/NAME.json, under `make prove` only."""

    def record(name: str, **figures: object) -> None:
        if os.environ.get("UNSTRAND_PROVE") != "1":
            return
        git = ["git", "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(git, cwd=PROJECT, capture_output=True, text=True, check=True)
        folder = PROJECT / "docs" / "proofs"
        folder.mkdir(exist_ok=True)
        figures = {"commit": commit.stdout.strip()} | figures
        (folder / f"{name}.json").write_text(json.dumps(figures, indent=2) + "\n")

    return record


class System:
    """Outside programs. Installs and adds users only where the person running the tests said so."""

    def __init__(self) -> None:
        asked = os.environ.get("CI") == "true" or os.environ.get("UNSTRAND_SYSTEM_TESTS") == "1"
        self.allowed = asked and os.geteuid() == 0 and Path("/etc/debian_version").exists()
        self._updated = False

    def require(self, *packages: str, binaries: tuple[str, ...] = ()) -> None:
        """Make the packages present or skip the test.

        With ``binaries`` that are all there already, nothing is installed and the test runs
        anywhere: name them only where running them does no harm to the machine.
        """
        if binaries and all(shutil.which(binary) for binary in binaries):
            return
        missing = [package for package in packages if not self._installed(package)]
        if not self.allowed:
            wanted = " ".join(packages)
            pytest.skip(f"system packages [{wanted}] are tried only with {ENABLE}")
        if missing:
            with _LOCK.open("w") as lock:  # another worker of this run may be installing
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._install([name for name in missing if not self._installed(name)])

    def _installed(self, package: str) -> bool:
        query = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
        if shutil.which("dpkg-query") is None:
            return False
        answer = subprocess.run(query, capture_output=True, text=True, check=False)
        return answer.stdout == "installed"

    def _install(self, packages: list[str]) -> None:
        if not packages:
            return
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        if not self._updated:
            subprocess.run(
                ["apt-get", "-qq", "update"], env=environment, check=True, capture_output=True
            )
            self._updated = True
        # A package must not start its daemon: the harness starts its own, in a folder of its own.
        policy = Path("/usr/sbin/policy-rc.d")
        ours = not policy.exists()
        if ours:
            policy.write_text("#!/bin/sh\nexit 101\n")
            policy.chmod(0o755)
        try:
            subprocess.run(
                ["apt-get", "-qq", "install", "-y", "--no-install-recommends", *packages],
                env=environment,
                check=True,
                capture_output=True,
                text=True,
            )
        finally:
            if ours:
                policy.unlink()


@pytest.fixture(scope="session")
def system() -> System:
    """Outside programs, see `System.require`."""
    return System()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """For runs of several workers: all real outside parts in one of them, so that no two of them
    meet; the other tests by folder, so that what a folder's tests share is made once."""
    for item in items:
        folder = item.path.parent.relative_to(PROJECT)
        real = item.get_closest_marker("real") is not None
        item.add_marker(pytest.mark.xdist_group("real" if real else folder.as_posix()))


def pytest_terminal_summary(terminalreporter):
    """List what was skipped and what would enable it."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    )
    if not reasons:
        return
    terminalreporter.section("skipped, and what would enable it")
    for reason, count in sorted(reasons.items()):
        terminalreporter.line(f"{count:4d}  {reason}")
