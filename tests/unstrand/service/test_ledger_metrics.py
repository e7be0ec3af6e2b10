"""The last known day for Prometheus: the ledger's own figures, worked out beforehand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from analytics.reports import cost_report
from analytics.window import Window
from unstrand.service.ledger_metrics import DAY, LedgerCollector

_spec = importlib.util.spec_from_file_location(
    "small_site", Path(__file__).parents[2] / "small_site.py"
)
small_site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(small_site)


@pytest.fixture
def series(store):
    """Sample values of the small site by name and labels."""
    small_site.fill(store)
    collector = LedgerCollector(store)
    collector.refresh()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in collector.collect()
        for sample in family.samples
    }


def test_an_empty_store_has_no_series(store):
    collector = LedgerCollector(store)
    collector.refresh()
    assert [sample for family in collector.collect() for sample in family.samples] == []


def test_cost_per_team_is_that_of_the_report(store, series):
    window = Window(small_site.UNTIL - DAY, small_site.UNTIL)
    for row in cost_report(store, window).rows:
        labels = ("small", row["team"] or "", "USD")
        assert series["unstrand_ledger_last_day_cost", *labels] == float(row["cost"])


def test_the_classes_of_the_last_day_add_up_to_what_is_installed(series):
    seconds = [v for key, v in series.items() if key[0] == "unstrand_ledger_last_day_gpu_seconds"]
    assert sum(seconds) == sum(small_site.GPUS.values()) * 24 * 3600


def test_how_far_the_ledger_reaches_is_told(series):
    until = series["unstrand_ledger_until_timestamp_seconds", "small"]
    assert until == small_site.UNTIL.timestamp()
    assert series["unstrand_ledger_last_day_coverage_ratio", "small"] == 1.0
