"""What reports promise whatever they group by."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from analytics.errors import PriceError, ReportError
from analytics.org import WHOLE_PPM, Mapping, load_mappings
from analytics.prices import Price, load_prices
from analytics.reports import cost_report, coverage_report, ledger_report, stranding_report
from analytics.reports.keys import ALL_KEYS
from analytics.window import EPOCH, Window


@pytest.fixture
def busy(site):
    """Two nodes, two teams, a waiting gang, a starved node, a broken GPU."""
    site.hours = 30
    site.node("n1").node("n2", gpus=4, model="t4").known().price("6.88").price("0.526", model="t4")
    site.run(gpus=3, until=11.3, util=0.61, account="nlp", user="zoë")
    site.run(gpus=2, since=2.7, until=20.1, cpus=60, util=0.13, account="vision", user="bo")
    site.run(gpus=1, node="n2", since=1.1, until=29.9, account="nlp")
    site.wait(8, since=5.2, until=25.0, account="vision").xid(3.3, uuid="x")
    site.team("NLP", account="nlp").team("Vision", account="vision")
    return site.built()


@pytest.mark.parametrize("key", ALL_KEYS)
def test_every_grouping_adds_up_to_the_same_total_to_the_last_digit(busy, key):
    whole = cost_report(busy.store, busy.window, ())
    report = cost_report(busy.store, busy.window, (key,))
    assert sum(row["cost"] for row in report.rows) == report.total["cost"] == whole.total["cost"]
    assert report.total == whole.total
    assert report.identity.holds


def test_two_keys_refine_one(busy):
    teams = busy.by("team")
    finer = cost_report(busy.store, busy.window, ("team", "gpu_model")).rows
    for (team,), row in teams.items():
        parts = [r for r in finer if r["team"] == team]
        assert sum(r["used_gpu_hours"] for r in parts) == row["used_gpu_hours"]


def test_a_window_that_cuts_hours_is_exact_not_prorated(busy):
    start = busy.window.since + timedelta(hours=2, minutes=17, seconds=3)
    odd = Window(start, start + timedelta(hours=9, minutes=1))
    before, after = Window(busy.window.since, odd.since), Window(odd.until, busy.window.until)
    parts = [ledger_report(busy.store, w) for w in (before, odd, after)]
    assert all(part.identity.holds for part in parts)
    whole = ledger_report(busy.store, busy.window)
    for nth, row in enumerate(whole.rows):
        total = sum(part.rows[nth]["gpu_hours"] for part in parts)
        assert total == pytest.approx(row["gpu_hours"], abs=Decimal("1e-8"))


def test_causes_explain_all_of_the_stranded_and_waiting_time(busy):
    report = stranding_report(busy.store, busy.window)
    assert report.identity.gpu_seconds_difference == 0
    assert {row["team"] for row in report.rows if row["role"] == "waiter"} == {"Vision"}
    assert report.total["gpu_hours"] > 0


def test_an_owner_split_60_40_pays_60_40(busy):
    split = [
        Mapping(key_kind="account", key_value="nlp", team=team, ratio_ppm=ppm, valid_from=EPOCH)
        for team, ppm in (("left", 600_000), ("right", 400_000))
    ]
    with busy.store.work() as work:
        load_mappings(work, split, at=busy.window.since, actor="test", replace=True)
    teams = busy.by("team")
    left, right = teams[("left",)], teams[("right",)]
    assert left["used_gpu_hours"] * 4 == right["used_gpu_hours"] * 6
    assert left["cost"] * 4 == pytest.approx(right["cost"] * 6, abs=Decimal("0.0001"))
    assert sum(m.ratio_ppm for m in split) == WHOLE_PPM


def test_splits_that_name_a_team_in_common_are_one_row_of_it(busy):
    shares = [("nlp", "NLP", 600_000), ("nlp", "Shared", 400_000),
              ("vision", "Vision", 750_000), ("vision", "Shared", 250_000)]  # fmt: skip
    split = [
        Mapping(key_kind="account", key_value=account, team=team, ratio_ppm=ppm, valid_from=EPOCH)
        for account, team, ppm in shares
    ]
    accounts = busy.by("account")
    with busy.store.work() as work:
        load_mappings(work, split, at=busy.window.since, actor="test", replace=True)
    teams = busy.by("team")
    for name in ("used_gpu_hours", "allocated_idle_gpu_hours", "stranded_gpu_hours"):
        nlp, vision = accounts[("nlp",)][name], accounts[("vision",)][name]
        assert nlp + vision > 0
        expected = {"NLP": 6 * nlp, "Vision": vision * 15 / 2, "Shared": 4 * nlp + vision * 5 / 2}
        for team, amount in expected.items():
            assert teams[(team,)][name] * 10 == pytest.approx(amount, abs=Decimal("1e-7"))
    days = cost_report(busy.store, busy.window, ("day", "team")).rows
    assert [row["day"] for row in days if row["team"] == "Shared"] == sorted(
        {row["day"] for row in days}
    )


@pytest.mark.parametrize("place", ["gpu_model", "node", "cluster"])
def test_jobs_by_place_are_what_their_runs_held_there(busy, place):
    with busy.store.work() as work:
        held = work.rows(
            f"SELECT job_id AS job, p.{place}, CAST(sum(used) AS DOUBLE) / 3.6e9 AS used "
            "FROM ledger_hour JOIN ledger_run USING (run_key) "
            "JOIN ledger_pool p USING (pool_key) GROUP BY ALL"
        )
    report = cost_report(busy.store, busy.window, ("job", place))
    told = {
        (row["job"], row[place]): float(row["used_gpu_hours"])
        for row in report.rows
        if row["job"] is not None
    }
    assert len(held) == 3
    expected = {(row["job"], row[place]): row["used"] for row in held}
    for key, used in expected.items():
        assert told.pop(key) == pytest.approx(used, abs=1e-8)
    assert not any(told.values()), "the rest only waited"
    assert report.total == cost_report(busy.store, busy.window, ()).total


def test_a_holder_without_mapping_is_unmapped_and_named_with_what_to_map(busy):
    with busy.store.work() as work:
        load_mappings(work, [], at=busy.window.since, actor="test", replace=True)
    assert set(busy.by("team")) == {(None,), ("unmapped",)}
    found = coverage_report(busy.store, busy.window).unmapped
    assert {(row.account, row.user) for row in found} == {
        ("nlp", "ann"), ("nlp", "zoë"), ("vision", "bo"),
    }  # fmt: skip


def test_a_model_without_price_is_flagged_and_not_called_free(site):
    site.node(model="riva").known().built()
    report = cost_report(site.store, site.window, ("gpu_model",))
    assert report.rows[0]["cost"] is None
    assert report.total["unpriced_gpu_hours"] == 8
    assert "no price" in report.remarks[0]
    assert report.identity.holds


@pytest.mark.parametrize("last", ["5.00", "6.00"])
def test_a_price_that_was_replaced_is_no_longer_what_installed_gpus_cost(site, last):
    site.node().known().run(gpus=3, until=1, util=1.0)
    first = {"5.00": "6.00", "6.00": "5.00"}[last]
    twins = [
        Price(gpu_model="h100", amount=Decimal(amount), currency="USD", kind="contracted",
              source="file", effective_from=EPOCH)
        for amount in (first, last)
    ]  # fmt: skip
    with site.store.work() as work:
        load_prices(work, twins, at=site.window.since, actor="test")
    report = cost_report(site.built().store, site.window)
    assert report.total["cost"] == 8 * Decimal(last)
    assert report.identity.holds


def test_currencies_are_not_mixed_without_a_dated_rate(site):
    site.node("a", gpus=1).node("b", gpus=1, model="t4").known()
    site.price("2.00").price("1.00", model="t4", currency="EUR").built()
    with pytest.raises(PriceError, match="EUR, USD"):
        cost_report(site.store, site.window)
    with pytest.raises(PriceError, match="no rate from EUR to USD"):
        cost_report(site.store, site.window, currency="USD")
    row = {"from_currency": "EUR", "to_currency": "USD", "rate": Decimal("1.1"), "source": "test"}
    with site.store.work() as work:
        work.append("currency_rate", {k: [v] for k, v in {**row, "effective_from": EPOCH}.items()})
    report = cost_report(site.store, site.window, currency="USD")
    assert report.total["cost"] == Decimal("3.10")
    assert report.identity.holds


def test_unknown_keys_and_clusters_are_refused_with_what_exists(busy):
    with pytest.raises(ReportError, match="team, project"):
        cost_report(busy.store, busy.window, ("colour",))
    with pytest.raises(ReportError, match="there is c"):
        cost_report(busy.store, busy.window, cluster="elsewhere")


def test_an_hour_that_was_never_built_shows_as_a_difference_and_a_remark(site):
    site.node().known().save()
    report = cost_report(site.store, site.window)
    assert report.identity.gpu_seconds_difference == -8 * 3600
    assert "not in the ledger yet" in report.remarks[0]


@pytest.mark.parametrize(("zone", "hours"), [("America/New_York", 25), ("UTC", 24)])
def test_the_day_that_clocks_go_back_has_25_hours(site, zone, hours):
    site.hours = 24 * 40
    site.node(gpus=1, model="none").known().built()
    window = Window(site.window.since, site.window.until, zone)
    days = {r["day"]: r["gpu_hours"] for r in cost_report(site.store, window, ("day",)).rows}
    assert days["2026-11-01"] == hours
