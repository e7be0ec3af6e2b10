"""A closed day keeps its rows and its prices, whatever is put into the books later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from analytics.errors import ClosedDayError, SettingError
from analytics.ledger import build
from analytics.ledger.closing import close_day, day_window, ledger_hash
from analytics.ledger.settings import put_setting
from analytics.prices import Price, load_prices
from analytics.reports import cost_report, ledger_report
from analytics.window import EPOCH

CLOSED = datetime(2026, 10, 12, tzinfo=UTC)
LATER = CLOSED + timedelta(days=1)


@pytest.fixture
def day(site):
    site.hours = 48
    site.node().known().price("2.00")
    site.run(gpus=2, since=1.5, until=20.25, util=0.5, run_id="r")
    return site


def close(site, now=CLOSED):
    return close_day(site.store, "c", site.window.since.date(), now=now, actor="ada")


def put_price(site, amount, **more):
    price = Price(gpu_model="h100", amount=Decimal(amount), currency="USD", kind="contracted",
                  source="test", **more)  # fmt: skip
    with site.store.work() as work:
        load_prices(work, [price], at=LATER, actor="ada")


def test_a_closed_day_stays_the_same_bytes_after_a_price_change(day):
    day.built()
    digest = close(day).ledger_hash
    before = ledger_report(day.store, day_window(day.window.since.date())).to_dict()
    put_price(day, "3.00")
    day.refreshed()
    with day.store.work() as work:
        assert ledger_hash(work, "c", day_window(day.window.since.date())) == digest
        assert work.value("SELECT count(*) FROM ledger_hour WHERE posting > 0") == 0
    assert ledger_report(day.store, day_window(day.window.since.date())).to_dict() == before


def test_the_identity_holds_over_a_closed_and_an_open_day_with_different_prices(day):
    day.built()
    close(day)
    put_price(day, "3.00")
    day.refreshed()
    report = cost_report(day.store, day.window, ("day",))
    assert report.identity.holds, report.identity
    assert [row["cost"] for row in report.rows] == [24 * 8 * 2, 24 * 8 * 3]


def test_a_fact_that_comes_after_closing_is_corrected_at_the_price_of_then(day):
    day.built()
    close(day)
    put_price(day, "3.00")
    day.run(gpus=3, since=10, until=12, util=1.0)
    day.refreshed()
    report = cost_report(day.store, day_window(day.window.since.date()), ("class",))
    assert report.identity.holds, report.identity
    assert report.total["cost"] == 24 * 8 * 2
    prices = day.store.rows(
        "SELECT DISTINCT amount FROM ledger_hour JOIN price USING (price_key) WHERE posting > 0"
    )
    assert [row["amount"] for row in prices] == [2]


def test_a_closed_day_built_again_after_a_price_change_gives_no_correction(day):
    day.built()
    close(day)
    put_price(day, "3.00")
    assert build(day.store, "c", day_window(day.window.since.date())) == 0


def test_a_day_whose_prices_changed_since_it_was_built_is_not_closed(day):
    day.built()
    put_price(day, "3.00")
    with pytest.raises(ClosedDayError, match="build it again first"):
        close(day)
    day.refreshed()
    close(day, LATER + timedelta(days=1))
    assert cost_report(day.store, day_window(day.window.since.date())).identity.holds


def test_a_setting_does_not_reach_back_into_a_closed_day(day):
    day.built()
    close(day)
    with day.store.work() as work:
        with pytest.raises(SettingError, match="2026-10-05 is closed"):
            put_setting(work, "headroom_gpus", 4, since=EPOCH, actor="ada")
        put_setting(work, "headroom_gpus", 4, since=day.window.since + timedelta(days=1), actor="a")
    day.refreshed()
    with day.store.work() as work:
        assert work.value("SELECT count(*) FROM ledger_hour WHERE posting > 0") == 0
    assert day.hours_of()["reserved"] > 0


def test_a_purchase_type_set_at_noon_counts_from_the_next_day(day):
    put_price(day, "1.00", purchase_type="spot")
    with day.store.work() as work:
        noon = day.window.since + timedelta(hours=12)
        put_setting(work, "purchase_type", "spot", since=noon, actor="ada")
    day.built()
    report = cost_report(day.store, day.window, ("day",))
    assert report.identity.holds, report.identity
    assert [row["cost"] for row in report.rows] == [24 * 8 * 2, 24 * 8 * 1]
    assert report.remarks == []


def test_a_price_that_stands_in_for_another_purchase_type_is_told(day):
    with day.store.work() as work:
        put_setting(work, "purchase_type", "spot", since=EPOCH, actor="ada")
    day.built()
    report = cost_report(day.store, day.window)
    assert report.remarks == ["h100 is priced as on_demand: there is no price of spot"]
