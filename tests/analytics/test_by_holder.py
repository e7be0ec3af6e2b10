"""Rows by holder, by hour and by day, are the ledger's rows added up, whatever happens to a day."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from analytics.errors import ReportError
from analytics.ledger.classes import LedgerClass, Overlay
from analytics.ledger.closing import close_day
from analytics.ledger.freshness import facts_hashes, recorded_hashes, samples_in
from analytics.reports import cells, cost_report, stranding_report
from analytics.reports.source import Source
from analytics.window import Window

AMOUNTS = [name.value for name in (*LedgerClass, *Overlay)]
KEYS = "hour, since, until, holder_key, price_key, posting"
DAY = (
    "date_trunc('day', rows.hour) AS hour, date_trunc('day', rows.hour) AS since, "
    "date_trunc('day', rows.hour) + INTERVAL 1 DAY AS until, holder_key, price_key, posting"
)


def both_ways(site):
    """Each table's sums by the keys that it shares with the ledger's: they must be the same."""
    sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in AMOUNTS)
    cause = ", class, role, rule"
    time = "CAST(sum(gpu_us) AS BIGINT) AS gpu_us"
    for table, small, keys, what in (
        ("ledger_hour", "ledger_holder_hour", KEYS, sums),
        ("ledger_hour", "ledger_holder_day", DAY, sums),
        ("ledger_cause", "ledger_holder_cause", KEYS + cause, time),
        ("ledger_cause", "ledger_holder_day_cause", DAY + cause, time),
    ):
        rows = [
            site.store.rows(
                f"SELECT {columns}, cluster, gpu_model, {what} FROM {source} AS rows "
                "JOIN ledger_pool USING (pool_key) GROUP BY ALL ORDER BY ALL"
            )
            for source, columns in ((table, keys), (small, KEYS + cause * (cause in keys)))
        ]
        assert rows[0] == rows[1]
        yield len(rows[0])


def busy_site(site):
    site.hours = 24
    site.node("n1").node("n2").node("n3", model="a100").known()
    site.price("6.88").price("3.00", model="a100").price("8.00", since=5.5)
    site.team("red", account="lab").team("blue", account="other", since=7)
    site.run(gpus=4, node=["n1", "n2"], until=9, util=0.5)
    site.run(gpus=4, node="n1", since=2, until=20, account="other", user="bob", cpus=60)
    site.wait(32, nodes=4, since=1, until=15)
    site.wait(2, since=3, until=22, account="other")
    return site.built()


def test_rows_by_holder_add_up_to_the_ledger(site):
    busy_site(site)
    assert min(both_ways(site)) > 0
    names = [row["team"] for row in cost_report(site.store, site.window, ("team",)).rows]
    assert "red" in names
    assert "blue" in names
    by_node = cost_report(site.store, site.window, ("team", "node")).total
    by_team = cost_report(site.store, site.window, ("team",)).total
    assert by_node == by_team
    by_job = stranding_report(site.store, site.window, ("job",)).total
    assert stranding_report(site.store, site.window, ("team",)).total == by_job


def test_rows_by_holder_follow_rebuilds_and_corrections_of_closed_days(site):
    busy_site(site)
    close_day(
        site.store, "c", site.window.since.date(), now=site.window.until + timedelta(days=9),
        actor="test", least_coverage=0,
    )  # fmt: skip
    site.run(gpus=2, node="n3", since=4, until=6)
    assert site.refreshed() > 0
    assert min(both_ways(site)) > 0
    postings = site.store.rows("SELECT DISTINCT posting FROM ledger_holder_hour ORDER BY ALL")
    assert [row["posting"] for row in postings] == [0, 1]


def hourly(monkeypatch):
    """Reports read hours only, as they did before there were days."""
    monkeypatch.setattr(Source, "over", lambda self, since, until: self)


def weeks_site(site):
    """Three days and a half: a price and an owner that change at noon, a team that moves."""
    site.hours = 84
    site.node("n1").node("n2", model="a100").known()
    site.price("6.88").price("3.00", model="a100").price("8.00", since=36)
    site.team("red", account="lab").team("blue", account="other", since=40.5)
    site.run(gpus=4, node="n1", since=5, until=70, cpus=60)
    site.run(gpus=4, node="n2", since=20, until=81, account="other", user="bob")
    site.wait(32, nodes=4, since=1, until=60).wait(2, since=30, until=80, account="other")
    return site.built()


def test_days_give_the_figures_of_their_hours(site, monkeypatch):
    weeks_site(site)
    since, until = site.window.since, site.window.until
    keys = [(), ("team",), ("team", "day"), ("user", "week", "class"), ("gpu_model", "weekday")]
    whole = [Window(since, until, zone) for zone in ("UTC", "Asia/Seoul")]
    ragged = [Window(since + timedelta(hours=a), until - timedelta(hours=b))
              for a, b in ((7, 12), (24, 0), (30, 31))]  # fmt: skip
    asked = [(window, by) for window in whole for by in keys]
    asked += [(window, ("team", "day")) for window in ragged]
    asked.append((Window(since + timedelta(hours=6.25), until), ("team", "day")))
    by_day = [cost_report(site.store, *one).to_dict() for one in asked]
    whose = [stranding_report(site.store, *one).to_dict() for one in asked]
    hourly(monkeypatch)
    assert [cost_report(site.store, *one).to_dict() for one in asked] == by_day
    assert [stranding_report(site.store, *one).to_dict() for one in asked] == whose


def test_whole_days_are_read_as_days_and_the_rest_as_hours():
    source = Source("ledger_holder_hour", "ledger_holder_cause", daily=True)
    first, last = datetime(2026, 10, 5, tzinfo=UTC), datetime(2026, 10, 9, tzinfo=UTC)
    whole = source.over(first, last)
    assert (whole.hours, whole.causes) == ("ledger_holder_day", "ledger_holder_day_cause")
    assert source.over(first, first + timedelta(hours=23)).hours == "ledger_holder_hour"
    mixed = source.over(first - timedelta(hours=1), last).hours
    assert "ledger_holder_day WHERE" in mixed
    assert "ledger_holder_hour AS hours WHERE" in mixed


def test_a_report_of_too_many_groups_is_refused(site, monkeypatch):
    busy_site(site)
    monkeypatch.setattr(cells, "MOST_CELLS", 5)
    for report in (cost_report, stranding_report):
        with pytest.raises(ReportError, match="more than 5 groups"):
            report(site.store, site.window, ("team", "hour"))


def test_groups_that_are_far_too_many_are_not_added_up_first(site, monkeypatch):
    busy_site(site)
    monkeypatch.setattr(cells, "MOST_CELLS", 1)
    month = Window(site.window.since, site.window.since + timedelta(days=31))
    with pytest.raises(ReportError, match=r"about \d+ groups"):
        cost_report(site.store, month, ("node", "hour"))


def test_causes_count_as_groups_before_they_are_added_up(site, monkeypatch):
    busy_site(site)
    month = Window(site.window.since, site.window.since + timedelta(days=31))
    whole = cost_report(site.store, month, ("node", "day"))
    many = len({(row["node"], row["day"]) for row in whole.rows})
    asked = []
    monkeypatch.setattr(cells, "_refuse_more", asked.append)
    monkeypatch.setattr(cells, "MOST_CELLS", many)  # the groups themselves would do
    with pytest.raises(ReportError, match="groups and causes within them"):
        cost_report(site.store, month, ("node", "day"))
    assert asked == []


def test_a_build_counts_the_samples_as_its_next_check_does(site):
    """Each is counted for the hour that it ends in and for the one that it may reach back to."""
    site.hours = 4
    site.node("n1").node("n2").known()
    site.run(gpus=2, node="n1", until=4, util=0.5)
    site.run(gpus=1, node="n2", since=0.5, until=3.2, util=0.2, uuids=["late"])
    site.measure(0.3, 0.51, 4, "n2", "odd", step_s=47.0)
    site.measure(0.3, 0.1, 4, "n2", "rare", step_s=2000.0)
    site.built()
    span = (site.window.since, site.window.until)
    with site.store.work() as work:
        now, built = facts_hashes(work, "c", *span), recorded_hashes(work, "c", *span)
    assert built == now
    assert all(samples_in(text) > 100 for text in built.values())


def test_an_hour_of_very_many_facts_has_a_fingerprint(site):
    """The sum of its hashes once left 63 bits and the build died."""
    site.node("n1").known()
    runs = [f"q{n}" for n in range(9_000)]
    size = len(runs)
    with site.store.work() as work:
        work.append(
            "job_run",
            {
                "cluster": ["c"] * size, "run_id": runs, "job_id": runs, "attempt": [1] * size,
                "submit_at": [site.window.since] * size, "state": ["PENDING"] * size,
                "source": ["test"] * size,
            },
        )  # fmt: skip
    site.built()
    assert site.refreshed() == 0


@pytest.mark.slow
def test_the_ledger_is_the_same_with_the_compiler_off():
    """A build with samples, warnings as errors, in plain Python."""
    test = Path(__file__).with_name("test_golden_cases.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test), "-k",
         "test_1_ or test_7_ or test_8_"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert "passed" in done.stdout
