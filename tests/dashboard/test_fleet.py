"""The Fleet page: what every node was in, what is broken, how boards are cut."""

from __future__ import annotations

from datetime import timedelta

import pytest

from analytics.questions.device_health import device_health
from analytics.questions.fleet_map import fleet_map
from analytics.reports import ledger_report
from analytics.window import Window
from dashboard.fleet.map import MOST_STEPS, step_hours
from dashboard.fleet.mig import slices_of

WINDOW = {"from_": "2026-10-19", "to": "2026-11-01"}


@pytest.mark.parametrize("days", [1, 7, 28, 100, 400])
def test_the_map_stays_readable(days):
    assert days * 24 / step_hours(days) <= MOST_STEPS


def test_the_cells_of_the_map_add_up_to_the_ledger(site_store, site):
    window = Window(site.SINCE, site.UNTIL)
    cells = fleet_map(site_store, window, 4)
    for row in ledger_report(site_store, window).rows:
        found = sum(cell.gpu_hours[row["class"]] for cell in cells)
        assert found == pytest.approx(float(row["gpu_hours"]), abs=1e-6), row["class"]
    assert len(cells) == 3 * 14 * 6


def test_a_cell_is_what_the_node_was_most_of_the_time(site_store, site):
    cells = fleet_map(site_store, Window(site.SINCE, site.UNTIL), 24)
    last = {cell.node: cell.largest for cell in cells}
    assert last == {"big-1": "allocated_idle", "big-2": "drained", "old-1": "used"}


def test_the_page_says_how_much_was_held_and_names_the_emptiest_node(site_store, open_page):
    text = open_page(site_store, "fleet", **WINDOW).text
    assert "62.5% of the 2,688 GPU-h of 3 nodes were held by jobs; least on big-2 (0.0%)" in text
    assert "Node big-2 is drained" in text
    assert "No fault, no uncorrected memory error, no slowed clock on record" in text


@pytest.fixture
def sick_store(store, site):
    site.fill(store)
    at = site.UNTIL - timedelta(hours=3)
    with store.work() as work:
        work.append(
            "event",
            {"cluster": [site.CLUSTER], "ts": [at], "kind": ["xid"], "node": ["big-2"],
             "code": [79], "fatal": [False], "source": ["test"]},
        )  # fmt: skip
        work.append(
            "mig_instance",
            {"cluster": [site.CLUSTER] * 2, "node": ["big-1"] * 2, "gpu_uuid": ["GPU-1"] * 2,
             "mig_uuid": ["MIG-a", "MIG-b"], "profile": ["3g.40gb", "<b>2g</b>"],
             "gpu_slices": [3, 2], "placement_start": [0, 4], "valid_from": [site.SINCE] * 2,
             "source": ["test"] * 2},
        )  # fmt: skip
    return store


def test_faults_and_mig_slices_are_shown(sick_store, open_page, site):
    page = open_page(sick_store, "fleet", **WINDOW)
    assert "big-2 1 Xid 79, 2026-11-01 21:00" in page.text
    assert "3g.40gb" in page.text
    assert "width:42.86%" in page.markup, "3 of 7 slices"
    assert "<b>2g</b>" not in page.markup
    health = {n.node: n for n in device_health(sick_store, Window(site.SINCE, site.UNTIL))}
    assert health["big-2"].sick
    assert not health["big-1"].sick
    assert health["big-1"].ecc_uncorrected is None, "not measured is not nought"


def test_an_a30_has_four_slices():
    assert (slices_of("NVIDIA A30"), slices_of("A100-80"), slices_of(None)) == (4, 7, 7)
