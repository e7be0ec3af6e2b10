"""A service and an agent that can be killed and started again, on a disk that can be filled."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent


class SmallDisk:
    """A file system of its own: full is full for everything on it."""

    kind = "tmpfs"

    def __init__(self, folder):
        self.folder, self.ballast = folder, folder / "ballast"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(folder)]
        subprocess.run(command, check=True)

    def fill(self, pids):
        with self.ballast.open("wb", buffering=0) as file:
            for size in (2**20, 2**12):
                while True:
                    try:
                        file.write(bytes(size))
                    except OSError:
                        break

    def empty(self, pids):
        self.ballast.unlink(missing_ok=True)

    def close(self):
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)


class ForbiddenWrites:
    """Where nothing may be mounted: no write of the two processes is allowed for a while."""

    kind = "file size limit"

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()

    def fill(self, pids):
        self._limit(pids, 0)

    def empty(self, pids):
        self._limit(pids, resource.RLIM_INFINITY)

    def close(self):
        pass

    def _limit(self, pids, most):
        for pid in pids:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


class Forked:
    """A process that the launcher made; used like a Popen."""

    def __init__(self, launcher, pid):
        self._launcher, self.pid, self._status = launcher, pid, None

    def poll(self, wait=False):
        if self._status is None:
            self._status = self._launcher.ask({"status": self.pid, "wait": wait})
        return self._status

    def wait(self, timeout=None):
        return self.poll(wait=True)


class Launcher:
    """See launch.py."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, HERE / "launch.py"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, question):
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, name, log, *arguments):
        asked = {"start": name, "log": str(log), "arguments": [str(a) for a in arguments]}
        return Forked(self, self.ask(asked))

    def stop(self):
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


class Site:
    """The two processes, and what the agent wrote down of batches that were on its disk."""

    def __init__(self, folder, disk, scenario):
        self.disk, self.db, self.state = disk, disk.folder / "s.duckdb", disk.folder / "state"
        self.scenario, self.book, self.log = scenario.path, folder / "book", folder / "log"
        self.book.mkdir()
        self.launcher = Launcher()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.agent = self.service = None
        self.torn = set()

    def start(self, *, cold=False):
        """Start what does not run. ``cold``: the service as a new interpreter."""
        url = f"http://127.0.0.1:{self.port}"
        if self.service is None or self.service.poll() is not None:
            if cold:
                command = ["-m", "unstrand", "up", "--db", self.db, "--port", self.port]
                with self.log.open("a") as out:
                    self.service = subprocess.Popen(
                        [sys.executable, *map(str, command)], stdout=out, stderr=out
                    )
            else:
                self.service = self.launcher.start("service", self.log, self.db, self.port)
        if self.agent is None or self.agent.poll() is not None:
            arguments = (url, self.state, self.scenario, self.book)
            self.agent = self.launcher.start("agent", self.log, *arguments)

    @property
    def alive(self):
        both = (self.agent, self.service)
        return [one.pid for one in both if one is not None and one.poll() is None]

    def answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self, process):
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(20) == -signal.SIGKILL

    def tear(self, random_):
        """Cut a spool file short, as a disk that lies about its cache does at a power cut."""
        files = sorted(self.state.glob("spool/*.batch"))
        if not files:
            return
        file = random_.choice(files)
        raw = file.read_bytes()
        file.write_bytes(raw[: random_.randrange(len(raw))])
        _, boot, sequence = file.name.removesuffix(".batch").split("-")
        self.torn.add((boot, int(sequence)))

    def kept(self):
        """(boot, sequence) -> rows of every batch that was on the agent's disk."""
        rows = [line.split() for line in self.lines("kept") if line.count(" ") == 2]
        return {(boot, int(sequence)): int(count) for boot, sequence, count in rows}

    def lines(self, name):
        file = self.book / name
        return file.read_text().splitlines() if file.exists() else []

    def wait(self, true, seconds=120.0):
        end = time.monotonic() + seconds
        while not true():
            said = self.log.read_text()[-2000:] if self.log.exists() else ""
            assert self.service.poll() is None, f"the service ended by itself: {said}"
            assert time.monotonic() < end, f"it never came to rest: {said}"
            time.sleep(0.02)

    def stop(self):
        for pid in self.alive:
            os.kill(pid, signal.SIGKILL)
        self.launcher.stop()
        self.disk.close()


@pytest.fixture
def site(tmp_path, scenario, system):
    scenario.set(count=2)
    disk = (SmallDisk if system.allowed else ForbiddenWrites)(tmp_path / "disk")
    made = Site(tmp_path, disk, scenario)
    yield made
    made.stop()
