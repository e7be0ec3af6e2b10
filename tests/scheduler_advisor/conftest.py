"""What all tests of this folder may use."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from collector.model import FactWindow, Node

_spec = importlib.util.spec_from_file_location("outline", Path(__file__).parents[1] / "outline.py")
_outline = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_outline)


@pytest.fixture(scope="session")
def outline():
    """``outline(html)``: words, structure and plots' data of a page as lines."""
    return _outline.outline_of


@pytest.fixture(scope="session")
def inventory():
    """``inventory(nodes, gpus, since, until)``: facts of a cluster ``c`` of nodes ``n0``, ``n1``,
    ... with A100, known all of the time."""

    def made(nodes, gpus, since, until):
        names = [f"n{node}" for node in range(nodes)]
        kinds = [("scheduler", None), *(("telemetry", name) for name in names)]
        return [
            *(Node(cluster="c", node=name, gpu_model="A100", gpus=gpus, cpus=64, mem_mib=1 << 19,
                   owned=True, partitions=("batch",), valid_from=since, source="test")
              for name in names),
            *(FactWindow(cluster="c", kind=kind, node=node, since=since, until=until, source="test")
              for kind, node in kinds),
        ]  # fmt: skip

    return made
