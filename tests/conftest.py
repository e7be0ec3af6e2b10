"""What every test may use: a fixed clock and an empty store."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from collector.store import Store

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path):
    """An empty store at the newest schema version."""
    with Store.open(tmp_path / "test.duckdb", clock=lambda: NOW) as opened:
        yield opened
