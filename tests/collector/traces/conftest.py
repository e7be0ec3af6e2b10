"""Small trace files, and the real ones."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)

OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
NODES = "sn,cpu_milli,memory_mib,gpu,model\n"


@pytest.fixture
def now():
    return NOW


@pytest.fixture
def write(tmp_path):
    """``write(name, text)`` -> path of a new file."""

    def write(name, text):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def openb_pods(write):
    """A pod list from lines without the header."""
    return lambda *lines: write("pods.csv", OPENB + "".join(line + "\n" for line in lines))


@pytest.fixture
def openb_nodes(write):
    """A node list from lines without the header."""
    return lambda *lines: write("nodes.csv", NODES + "".join(line + "\n" for line in lines))


@pytest.fixture
def swf(write):
    """An SWF file from (id, submit, wait, run, procs, limit) and header lines."""

    def build(*jobs, header=(), tail="", name="log.swf"):
        lines = [f"; {line}" for line in header]
        for number, submit, wait, run, procs, limit in jobs:
            first = f"{number} {submit} {wait} {run} {procs} -1 -1 {procs} {limit}"
            lines.append(f"{first} -1 1 7 3 -1 2 -1 -1 -1{tail}")
        return write(name, "\n".join(lines) + "\n")

    return build


@pytest.fixture(scope="session")
def traces(shared_data):
    """The folder of real traces."""
    return shared_data / "traces"
