"""Who bears what nobody holds: kept, spread by use, or to causers; always all of it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.errors import SettingError
from analytics.ledger.closing import close_day
from analytics.money import split
from analytics.reports import cost_report
from analytics.reports.keys import ALL_KEYS
from analytics.who_pays import Unallocated, WhoPays, put_rule, put_unallocated
from analytics.window import EPOCH, Window


@pytest.fixture
def busy(site):
    """Two days, two nodes of two models, two teams; a night without anybody; a starved node."""
    site.hours = 60
    site.node("n1").node("n2", gpus=4, model="t4").known().price("6.88").price("0.526", model="t4")
    site.run(gpus=3, until=11.3, util=0.61, account="nlp", user="zoë")
    site.run(gpus=2, since=2.7, until=20.1, cpus=60, util=0.13, account="vision", user="bo")
    site.run(gpus=1, node="n2", since=1.1, until=22.9, account="nlp")
    site.run(gpus=1, node="n2", since=49, until=51, account="vision")
    site.team("NLP", account="nlp").team("Vision", account="vision")
    return site.built()


def rule(site, value, since=EPOCH):
    with site.store.work() as work:
        put_unallocated(work, Unallocated(value), since=since, actor="ada")


@pytest.mark.parametrize("value", list(Unallocated))
def test_every_variant_and_every_grouping_adds_up_to_the_fleet_total(busy, value):
    before = cost_report(busy.store, busy.window, ()).total["cost"]
    rule(busy, value)
    for keys in ((), *((key,) for key in ALL_KEYS)):
        report = cost_report(busy.store, busy.window, keys)
        assert sum(row["cost"] for row in report.rows) == report.total["cost"] == before, keys
        assert report.identity.holds, keys


def test_two_groupings_of_what_is_spread_agree_to_the_cent(busy):
    rule(busy, "use")
    teams = {row["team"]: row["cost"] for row in cost_report(busy.store, busy.window).rows}
    assert teams["NLP"] > 0
    for more in ("user", "node", "gpu_model", "day", "class", "hour"):
        rows = cost_report(busy.store, busy.window, ("team", more)).rows
        for team, cost in teams.items():
            parts = sum(row["cost"] for row in rows if row["team"] == team)
            assert abs(parts - cost) < Decimal("0.0001"), (more, team)


def test_days_that_follow_each_other_add_up_to_their_window(busy):
    rule(busy, "use")
    whole = {row["team"]: row["cost"] for row in cost_report(busy.store, busy.window).rows}
    days = [
        Window(busy.window.since + timedelta(days=n), busy.window.since + timedelta(days=n + 1))
        for n in range(2)
    ]
    days.append(Window(days[1].until, busy.window.until))
    for team, cost in whole.items():
        parts = [
            row["cost"] for day in days for row in cost_report(busy.store, day).rows
            if row["team"] == team
        ]  # fmt: skip
        assert abs(sum(parts) - cost) < Decimal("0.00001")


def test_a_day_on_which_nobody_pays_stays_with_the_platform(busy):
    rule(busy, "use")
    rows = cost_report(busy.store, busy.window, ("day", "team")).rows
    cost = {(row["day"], row["team"]): row["cost"] for row in rows}
    full = 24 * (8 * Decimal("6.88") + 4 * Decimal("0.526"))
    assert cost[("2026-10-06", None)] == full
    assert cost[("2026-10-05", None)] == 0
    assert cost[("2026-10-05", "NLP")] + cost[("2026-10-05", "Vision")] == full


def test_what_is_spread_goes_by_what_each_pays_of_the_day(site):
    site.hours = 24
    site.node(gpus=4).known().price("1.00").team("A", account="a").team("B", account="b")
    site.run(gpus=2, account="a", util=1.0)
    site.run(gpus=1, account="b", until=12, util=1.0)
    site.built()
    rule(site, "use")
    rows = {row["team"]: row["cost"] for row in cost_report(site.store, site.window).rows}
    assert rows == {"A": Decimal("76.80"), "B": Decimal("19.20"), None: 0}  # 48:12 of 96


def test_causers_bear_what_they_strand_and_the_platform_the_rest(site):
    site.hours = 1
    site.node(mem_gib=512).known().price("1.00").team("A", account="a")
    site.run(gpus=1, mem_gib=512, account="a", util=1.0)
    site.built()
    kept = {row["team"]: row["cost"] for row in cost_report(site.store, site.window).rows}
    assert kept == {"A": 1, None: 7}
    rule(site, "causers")
    rows = {row["team"]: row["cost"] for row in cost_report(site.store, site.window).rows}
    assert rows == {"A": 8, None: 0}


def test_the_rule_has_a_date_and_windows_are_cut_there(site):
    site.hours = 48
    site.node(gpus=2).known().price("1.00").team("A", account="a")
    site.run(gpus=1, account="a", util=1.0)
    site.built()
    rule(site, "use", since=site.window.since + timedelta(hours=24))
    rows = {row["team"]: row["cost"] for row in cost_report(site.store, site.window).rows}
    assert rows == {"A": 24 + 48, None: 24}


@pytest.mark.parametrize(
    ("name", "payer", "word"),
    [
        ("unallocated", "holder", "platform, use, causers"),
        ("colour", "holder", "no class"),
        ("used", "god", "holder, causer"),
        ("free", "holder", "cannot pay"),
        ("gang_wait", "causer", "cannot pay"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(site, name, payer, word):
    with site.store.work() as work, pytest.raises(SettingError, match=word):
        put_rule(work, name, payer, since=EPOCH, actor="ada")


def test_rules_change_at_whole_hours_and_never_in_closed_days(site):
    site.hours = 24
    site.node(gpus=1).known().price("1").built()
    with site.store.work() as work, pytest.raises(SettingError, match="no whole hour"):
        put_rule(work, "lost", "holder", since=EPOCH + timedelta(minutes=1), actor="ada")
    close_day(site.store, "c", site.window.since.date(), actor="ada",
              now=site.window.until + timedelta(days=9))  # fmt: skip
    with site.store.work() as work:
        with pytest.raises(SettingError, match="is closed"):
            put_rule(work, "lost", "holder", since=site.window.since, actor="ada")
        put_rule(work, "lost", "holder", since=site.window.until, actor="ada")
        put_rule(work, "lost", "platform", since=site.window.until, actor="bob")
        assert WhoPays.load(work).at(site.window.until)["lost"] == "platform", "the last one put"


@given(
    st.integers(-(10**24), 10**24),
    st.lists(st.integers(-5, 10**20), max_size=12),
)
def test_a_split_adds_up_and_follows_its_weights(amount, weights):
    parts = split(amount, weights)
    whole = sum(max(w, 0) for w in weights)
    assert bool(parts) == bool(whole)
    if whole:
        assert sum(parts) == amount
        assert all(
            abs(p * whole - amount * max(w, 0)) < whole for p, w in zip(parts, weights, strict=True)
        )
