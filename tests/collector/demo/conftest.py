"""The demo's facts, made once for the tests of this folder."""

from __future__ import annotations

import pytest

from collector.demo import generate


@pytest.fixture(scope="package")
def demo():
    return generate()


@pytest.fixture(scope="package")
def healthy():
    return generate(faults=False)
