"""A real service process on a port of its own, and what it answers."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

LAUNCH = """
import sys
from collector.errors import CollectorError
from unstrand.errors import UnstrandError
from unstrand.service.run import serve
try:
    serve(sys.argv[1], host=sys.argv[2], port=int(sys.argv[3]), create=sys.argv[4] == "create",
          on_ready=lambda url: print(url, flush=True))
except (UnstrandError, CollectorError) as error:
    sys.exit(str(error))
"""


class ServiceProcess:
    """One service in a process of its own."""

    def __init__(self, arguments: list[str], log: Path) -> None:
        self.log = log
        self._stderr = log.open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *arguments],
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )

    def wait_ready(self, timeout_s: float = 60) -> str:
        """The address, once it answers."""
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(
            target=lambda: lines.put(self.process.stdout.readline()), daemon=True
        ).start()
        self.url = lines.get(timeout=timeout_s).strip()
        assert self.url, f"it ended instead: {self.errors()}"
        return self.url

    def get(self, path: str, **options) -> httpx.Response:
        return httpx.get(self.url + path, timeout=30, trust_env=False, **options)

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = 20) -> int:
        """Send the signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout_s)

    def errors(self) -> str:
        self.process.wait(60)
        return self.log.read_text()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self._stderr.close()


@pytest.fixture
def start_service(tmp_path):
    """Start services: ``start_service(db, port=0, host=..., create=True)``."""
    running: list[ServiceProcess] = []

    def start(db, *, port=0, host="127.0.0.1", create=True, ready=True) -> ServiceProcess:
        log = tmp_path / f"service-{len(running)}.log"
        arguments = [str(db), host, str(port), "create" if create else "open"]
        running.append(ServiceProcess(arguments, log))
        if ready:
            running[-1].wait_ready()
        return running[-1]

    yield start
    for service in running:
        service.close()
