"""A month of the small site with everything that a statement can say in it."""

from __future__ import annotations

import importlib.util
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from analytics.adjustments import Adjustment, decide, put_adjustment
from analytics.months import Month
from analytics.overhead import Overhead, load_overhead
from analytics.statements import Asked
from collector.store import Store

_spec = importlib.util.spec_from_file_location(
    "small_site", Path(__file__).parents[2] / "small_site.py"
)
small_site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(small_site)

NOW = datetime(2026, 11, 4, 9, 30, tzinfo=UTC)
OCTOBER = Month(2026, 10)


def _adjust(work, **more) -> str:
    given = {"month": OCTOBER, "team": "language", "currency": "USD"} | more
    return put_adjustment(work, Adjustment(**given), at=NOW).adjustment_id


@pytest.fixture(scope="session")
def billed(tmp_path_factory):
    """The store; language has a credit, an open dispute, and shares of two overheads."""
    path = tmp_path_factory.mktemp("bill") / "site.duckdb"
    with Store.open(path, clock=lambda: NOW) as store:
        small_site.fill(store)
        with store.work() as work:
            credit = _adjust(
                work, kind="credit", amount=Decimal("-20.50"), author="ada",
                reason="big-1 was <slow> & hot",
            )  # fmt: skip
            decide(work, credit, approve=True, actor="bob", at=NOW)
            _adjust(work, kind="dispute", amount=Decimal("-3"), author="kim",
                    reason="=cmd|' /C calc'!A0")  # fmt: skip
            rows = [
                Overhead(month=OCTOBER, name="storage", amount=Decimal("100.00"), currency="USD"),
                Overhead(month=OCTOBER, name="staff", amount=Decimal("100.01"), currency="USD",
                         rule="even"),
            ]  # fmt: skip
            load_overhead(work, rows, at=NOW, actor="ada")
        yield store


@pytest.fixture(scope="session")
def october():
    return Asked(OCTOBER)


@pytest.fixture(scope="session")
def now():
    return NOW
