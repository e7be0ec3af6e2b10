from __future__ import annotations

from datetime import UTC, datetime

import pytest

from collector.nvml import Nvml
from collector.telemetry.nvml_source import NvmlSource
from collector.telemetry.scenario import ScenarioSource
from collector.telemetry.source import Group

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
ALL = frozenset(Group)


class Clock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def door(stub_library, scenario):
    opened = Nvml.open(stub_library)
    yield opened
    opened.close()


@pytest.fixture
def source(door, clock):
    return NvmlSource(door, clock=lambda: NOW, monotonic=clock)


@pytest.fixture
def made_up(scenario, clock):
    return ScenarioSource(scenario.path, clock=lambda: NOW, monotonic=clock)


@pytest.fixture
def read(source, clock):
    """One full tick, fifteen seconds after the one before."""

    def tick(due=ALL):
        clock.seconds += 15.0
        return source.read(due)

    return tick
