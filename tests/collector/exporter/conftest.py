from __future__ import annotations

from datetime import UTC, datetime

import pytest

from collector.agent.picture import Picture
from collector.agent.reader import ReaderState
from collector.exporter.node import NodeExporter
from collector.mapping.attribution import Attribution
from collector.telemetry.scenario import ScenarioSource
from collector.telemetry.source import Group

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)


@pytest.fixture
def picture(scenario):
    """The picture of the scenario as it is now."""

    def make(**changes):
        source = ScenarioSource(scenario.path, clock=lambda: NOW, monotonic=lambda: 100.0)
        values = {
            "state": ReaderState.READING, "message": "", "tick": source.read(frozenset(Group)),
            "attribution": Attribution(), "taken_mono_s": 100.0,
            "costs": {"nvmlDeviceGetName": (3, 0.01, 0.005)}, "ticks": 7,
        }  # fmt: skip
        return Picture(**(values | changes))

    return make


@pytest.fixture
def exporter():
    """An exporter over a picture, as of the instant it was taken."""

    def make(picture, at=100.0, **more):
        return NodeExporter(lambda: picture, "n1", monotonic=lambda: at, **more)

    return make


@pytest.fixture
def series(exporter):
    """Series name with labels -> value, read back from the text."""

    def read(picture, **more):
        text = exporter(picture, **more).exposition(None)[0].decode()
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}

    return read
