"""Hours built as they close, late facts, dropped samples, closed days."""

from __future__ import annotations

from datetime import timedelta

import pytest

from analytics.errors import ClosedDayError
from analytics.ledger import build
from analytics.ledger.closing import close_day, day_window, ledger_hash
from analytics.reports import cost_report
from analytics.window import Window


@pytest.fixture
def day(site):
    site.hours = 24
    site.node().known().price("1.00")
    site.run(gpus=2, since=1.5, until=20.25, util=0.5, run_id="r")
    return site


def closed(site, **more):
    day = site.window.since.date()
    now = site.window.until + timedelta(days=4)
    return close_day(site.store, "c", day, now=now, actor="ada", **more)


def test_hours_built_one_by_one_are_the_day_built_at_once(day):
    day.built()
    at_once = day.ledger_rows()
    with day.store.work() as work:
        for table in ("ledger_hour", "ledger_build", "ledger_cause", "activity_hour"):
            work.execute(f"DELETE FROM {table}")
    for hour in range(24):
        since = day.window.since + timedelta(hours=hour)
        build(day.store, "c", Window(since, since + timedelta(hours=1)))
    assert day.ledger_rows() == at_once


def test_only_the_hours_that_late_facts_change_are_built_again(day):
    day.built()
    assert day.refreshed() == 0
    day.run(gpus=1, since=5.5, until=7.25)
    assert day.refreshed() == 3
    assert day.hours_of()["allocated_unmeasured"] == pytest.approx(1.75)


def test_a_run_that_ends_leaves_the_hours_it_held_through_alone(site):
    site.hours = 6
    site.node().known().run(gpus=1, since=0, known_until=6, run_id="open")
    site.built()
    with site.store.work() as work:
        work.execute("UPDATE job_run SET end_at = ?, state = 'COMPLETED'", [site.window.until])
        work.execute("UPDATE allocation SET end_at = ?", [site.window.until])
    assert site.refreshed() == 0


def test_an_hour_can_be_built_again_after_its_samples_were_dropped(day):
    before = day.built().hours_of()
    with day.store.work() as work:
        work.execute("DELETE FROM sample")
    assert day.refreshed() == 0
    day.run(gpus=1, since=3, until=4)
    assert day.refreshed() == 1
    after = day.hours_of()
    assert after["used"] == before["used"]
    assert after["allocated_unmeasured"] == pytest.approx(before.get("allocated_unmeasured", 0) + 1)


def test_new_rules_keep_what_was_measured_before_the_samples_were_dropped(day):
    before = day.built().hours_of()
    with day.store.work() as work:
        work.execute("DELETE FROM sample")
        work.execute("UPDATE ledger_build SET rules_version = 'older'")
    assert day.refreshed() == 24
    assert day.hours_of() == before
    assert day.hours_of()["used"] == pytest.approx(18.75)
    assert day.refreshed() == 0


def test_a_day_closes_after_its_grace_and_above_the_billing_coverage(day):
    day.built()
    with pytest.raises(ClosedDayError, match="stays open until 2026-10-09"):
        close_day(day.store, "c", day.window.since.date(), now=day.window.until, actor="ada")
    assert closed(day).coverage_ratio > 0.99
    with pytest.raises(ClosedDayError, match="closed already"):
        closed(day)


def test_a_dark_day_stays_open_and_says_why(site):
    site.hours = 24
    site.node().known(0, 12).built()
    with pytest.raises(ClosedDayError, match=r"coverage 0.5000 is below 0.95"):
        closed(site)


def test_facts_after_closing_are_corrections_and_the_closed_rows_stay_the_same_bytes(day):
    day.built()
    digest = closed(day).ledger_hash
    day.run(gpus=3, since=10, until=12, util=1.0)
    assert day.refreshed() == 3  # the first sample may reach back into hour 9
    with day.store.work() as work:
        assert ledger_hash(work, "c", day_window(day.window.since.date())) == digest
    postings = day.store.rows(
        "SELECT posting, count(*) AS n FROM ledger_hour GROUP BY 1 ORDER BY 1"
    )
    assert [row["posting"] for row in postings] == [0, 1]
    hours = day.hours_of()
    assert hours["used"] == pytest.approx(18.75 + 6, abs=0.02)
    report = cost_report(day.store, day.window, ("node",))
    assert report.identity.holds
    assert day.refreshed() == 0


def test_a_closed_day_built_again_from_its_facts_gives_no_correction(day):
    day.built()
    closed(day)
    assert build(day.store, "c", day.window) == 0
