"""The small site that the tests of the API use too."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from collector.store import Store

_spec = importlib.util.spec_from_file_location(
    "small_site_advice", Path(__file__).parents[2] / "small_site.py"
)
small_site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(small_site)


@pytest.fixture(scope="session")
def site():
    """The constants of the small site."""
    return small_site


@pytest.fixture(scope="module")
def site_path(tmp_path_factory):
    """The small site as a closed file, one per module."""
    path = tmp_path_factory.mktemp("site") / "site.duckdb"
    with Store.open(path, clock=lambda: small_site.UNTIL) as store:
        small_site.fill(store)
    return path
